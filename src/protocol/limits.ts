/** What one client event may hold. An event beyond these is refused with `invalid_request`, and the message names the limit. */
export const limits = {
  /** Levels of objects and arrays in an event. Beyond them JSON becomes a way to exhaust the stack. */
  depth: 64,
  /** Values in one message or body, whatever the protocol: `too_large`, before it is parsed. Bytes alone do not bound what parsing costs. */
  jsonMembers: 150_000,
  /** Characters of an id or a name that is kept and compared: `event_id`, `session_id`, `agent`, `chat`, `call_id` … */
  idLength: 256,
  /** UTF-8 bytes of `instructions`. */
  instructionsBytes: 64 * 1024,
  /** Entries of `messages`. */
  messages: 512,
  /** Entries of `tools`. */
  tools: 128,
  /** What every provider accepts as the name of a function. */
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  /** Levels of a tool's `parameters`. */
  schemaDepth: 16,
  /** UTF-8 bytes of a tool's `parameters` as JSON. */
  schemaBytes: 64 * 1024,
  /** Entries of any other list, such as `content_items`. */
  list: 1024,
} as const
