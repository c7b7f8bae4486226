/** Bounds of one client event. An event beyond them is refused with `invalid_request`, and the message names the bound. */
export const limits = {
  /** Levels of objects and arrays in an event. Deeper JSON could exhaust the stack. */
  depth: 64,
  /** Values in one message or body of any protocol: `too_large`, before it is parsed. Bytes do not bound the cost of parsing. */
  jsonMembers: 150_000,
  /** Characters of an id or a name that is kept and compared: `event_id`, `session_id`, `agent`, `chat`, `call_id` … */
  idLength: 256,
  /** UTF-8 bytes of `instructions`. */
  instructionsBytes: 64 * 1024,
  /** Entries of `messages`. */
  messages: 512,
  /** Entries of `tools`. */
  tools: 128,
  /** Names of functions that every provider accepts. */
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  /** Levels of a tool's `parameters`. */
  schemaDepth: 16,
  /** UTF-8 bytes of a tool's `parameters` as JSON. */
  schemaBytes: 64 * 1024,
  /** Entries of any other list, such as `content_items`. */
  list: 1024,
} as const
