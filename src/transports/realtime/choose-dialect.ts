import { isRecord, type Slot } from '../../protocol/json.ts'
import { beta } from './beta.ts'
import { ga } from './ga.ts'
import type { Dialect } from './model.ts'

/** What a client says in the upgrade of the version that it speaks: a header, or the subprotocol that stands for it in browsers. */
export function asksForBeta(headers: Headers): boolean {
  const offered = headers.get('sec-websocket-protocol')?.split(',') ?? []
  return (headers.get('openai-beta')?.includes('realtime=v1') ?? false) || offered.some((name) => name.trim() === 'openai-beta.realtime-v1')
}

/**
 * At `/realtime` the first event of the client decides for good: what only GA has makes it GA, everything else beta. Until then
 * only `session.created` was sent, in the words of the beta.
 */
export function settleDialect(event: Slot): Dialect {
  return speaksGa(event) ? ga : beta
}

function speaksGa({ type, session, response, item }: Slot): boolean {
  switch (type) {
    case 'session.update':
      return isRecord(session) && (session['type'] === 'realtime' || 'output_modalities' in session || 'audio' in session)
    case 'response.create':
      return isRecord(response) && ('output_modalities' in response || 'audio' in response)
    case 'conversation.item.create':
      return isRecord(item) && Array.isArray(item['content']) && item['content'].some(isGaPart)
    default:
      return false
  }
}

function isGaPart(part: unknown): boolean {
  return isRecord(part) && (part['type'] === 'output_text' || part['type'] === 'output_audio')
}
