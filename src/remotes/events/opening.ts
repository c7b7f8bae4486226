import type { Turn } from '../../core/ports/agent.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { uampIn } from '../../protocol/extensions.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { UAMP_VERSION } from '../../protocol/version.ts'

/**
 * The events that one turn is asked with on the other side: a session of its own, the whole conversation, and the response.
 * Nothing of it is remembered there, so the turn may come from a restarted session or go on from an old response.
 */
export function opening({ messages, said = [], config, client }: Turn, agent: string | undefined): readonly object[] {
  return [
    {
      type: 'session.create',
      uamp_version: UAMP_VERSION,
      ...(agent !== undefined && { agent }),
      session: sessionOf(config),
      client_capabilities: capabilitiesOf(client, config),
    },
    { type: 'input.text', text: '', messages: [...messages, ...said] },
    { type: 'response.create' },
  ]
}

/** When our connection breaks nobody reads the answer any more, and it must not go on at a price. */
function sessionOf({ extensions, ...config }: SessionConfig): object {
  const { resume: _, ...kept } = uampIn(extensions)
  return { ...config, extensions: { ...extensions, uamp: { ...kept, on_detach: 'cancel' } } }
}

/** Every extension event is passed on; whoever reads here gets those that he understands. */
function capabilitiesOf(client: Capabilities | undefined, { modalities }: SessionConfig): object {
  return {
    id: 'uamp-remote',
    provider: 'uamp',
    modalities,
    supports_streaming: true,
    supports_thinking: true,
    supports_caching: false,
    ...client,
    extensions: { ...client?.extensions, uamp: { events: true } },
  }
}
