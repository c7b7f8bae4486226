import { nextHops } from '../../core/basics/hops.ts'
import type { Turn } from '../../core/ports/agent.ts'
import type { ClientProfile } from '../../protocol/capabilities.ts'
import { uampIn } from '../../protocol/json.ts'
import { plainText, slotsOf } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'

/** The events that ask the other side for one turn, in order. */
export interface Request {
  readonly create: object
  readonly input: object
  readonly respond: object
}

/**
 * A new session, the whole conversation, and the response. The other side remembers nothing, so the turn may belong to a restarted
 * session or go on from an old response.
 */
export function requestOf(
  turn: Turn,
  { agent, token }: { readonly agent?: string | undefined; readonly token?: string | undefined },
): Request {
  const { messages, said = [], config, client, asked } = turn
  const last = [...messages, ...said].at(-1)
  return {
    create: {
      ...stamp('session.create'),
      uamp_version: UAMP_VERSION,
      ...(agent !== undefined && { agent }),
      ...(token !== undefined && { token }),
      session: sessionOf(config, nextHops(turn.trace)),
      client_capabilities: capabilitiesOf(client),
    },
    // §5.6: `text` is the newest text, which `messages` has, too.
    input: {
      ...stamp('input.text'),
      text: last?.role === 'user' ? plainText(last) : '',
      messages: [...messages, ...said],
      ...(last && slotsOf(last)),
    },
    respond: { ...stamp('response.create'), ...asked },
  }
}

/** A client event with an id, which the specification requires (§4). */
export function stamp<T extends string>(type: T): { readonly type: T; readonly event_id: string } {
  return { type, event_id: crypto.randomUUID() }
}

/** A response that nobody reads after our connection broke must stop, because it costs money. */
function sessionOf({ extensions, ...config }: SessionConfig, hops: number): object {
  const { resume: _, ...kept } = uampIn(extensions)
  return { ...config, extensions: { ...extensions, uamp: { ...kept, on_detach: 'cancel', hops } } }
}

/**
 * What our client says of itself, but for what would keep parts of the answer back: our own log has all of it, and each reader here
 * gets what it supports, and the extension events that it understands.
 */
function capabilitiesOf(client: ClientProfile | undefined): object {
  return {
    id: 'uamp-remote',
    provider: 'uamp',
    supports_caching: false,
    ...client,
    modalities: ['text', 'image', 'audio', 'video', 'file'],
    supports_streaming: true,
    supports_thinking: true,
    ...(client?.tools && { tools: { ...client.tools, supports_tools: true } }),
    extensions: { ...client?.extensions, uamp: { events: true } },
  }
}
