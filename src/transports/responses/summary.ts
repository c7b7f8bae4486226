import { isRecord, jsonIn } from '../../protocol/json.ts'
import { invalid } from '../../wire/parse.ts'

/** What the agent is told of a conversation that was made shorter. */
const PREFACE = 'Summary of the conversation so far:\n'

/** The content of a compaction. It is no secret: whoever sends it back could have written the summary as a message. */
export function compacted(summary: string): string {
  const bytes = new TextEncoder().encode(JSON.stringify({ v: 1, summary }))
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}

export function summaryIn(content: string, param: string): string {
  let value: unknown
  try {
    value = jsonIn(new TextDecoder().decode(Uint8Array.from(atob(content), (char) => char.charCodeAt(0))))
  } catch {}
  if (!isRecord(value) || typeof value['summary'] !== 'string') {
    throw invalid('"encrypted_content" is not a compaction of this server', param, 'invalid_value')
  }
  return PREFACE + value['summary']
}
