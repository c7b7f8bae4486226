import type { ContentItem } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord, recordsIn } from '../../protocol/json.ts'

type Fields = Readonly<Record<string, unknown>>

/** What a saved answer says of itself. */
export interface Found {
  readonly signatures: readonly string[]
  /** The words of the answer, or all of it. */
  readonly response: string | readonly ContentItem[] | undefined
}

/** Finds the signature and the answer in a `response.done`, an answer of OpenAI's protocols, or a transcript of a stream of these. */
export function signedIn(text: string): Found {
  const pieces = jsonIn(text)
  const end = pieces.findLast(isWhole)
  const found = end ? whole(end) : streamed(pieces)
  if (found.signatures.length > 0) return found
  throw new UampError('invalid_request', 'There is no signature in it: ask for one, or give it as --signature')
}

/** The JSON values of a text: one, one on each line, or those of server-sent events. */
function jsonIn(text: string): Fields[] {
  const value = parsed(text)
  if (value) return [value]
  return text.split('\n').flatMap((line): Fields[] => {
    const each = parsed(line.replace(/^data: ?/, ''))
    return each ? [each] : []
  })
}

function parsed(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isWhole({ type, object, response }: Fields): boolean {
  return (
    object === 'chat.completion' || object === 'response' || (isRecord(response) && /\.(done|completed|incomplete)$/.test(String(type)))
  )
}

function whole(value: Fields): Found {
  if (value['object'] === 'chat.completion') {
    const message = fieldsOf(recordsIn(value['choices'])[0]?.['message'])
    return { signatures: texts(value['signature']), response: words(message) }
  }
  const response = value['object'] === 'response' ? value : fieldsOf(value['response'])
  const output = recordsIn(response['output'])
  const beside = fieldsOf(fieldsOf(response['extensions'])['uamp'])['signature']
  const isOpenAi = response['object'] !== undefined
  return {
    signatures: texts(value['signature'] ?? response['signature'], beside),
    response: isOpenAi ? openAiWords(output) : (output as unknown as readonly ContentItem[]),
  }
}

/** A streamed completion: its chunks, and perhaps the signature after them. */
function streamed(pieces: readonly Fields[]): Found {
  const deltas = pieces.flatMap(({ choices }) => recordsIn(choices).map(({ delta }) => fieldsOf(delta)))
  const join = (of: (delta: Fields) => unknown): string =>
    deltas
      .map(of)
      .filter((piece) => typeof piece === 'string')
      .join('')
  const message = {
    content: join(({ content }) => content),
    refusal: join(({ refusal }) => refusal),
    audio: { transcript: join(({ audio }) => fieldsOf(audio)['transcript']) },
  }
  return { signatures: texts(...pieces.map(({ signature }) => signature)), response: deltas.length > 0 ? words(message) : undefined }
}

/** The words of a message of Chat Completions. */
function words({ content, refusal, audio }: Fields): string {
  return texts(content, fieldsOf(audio)['transcript'], refusal).join('')
}

/** The words of the items of Responses or Realtime. */
function openAiWords(output: readonly Fields[]): string {
  const parts = output.flatMap(({ content }) => recordsIn(content))
  const said = parts.flatMap(({ text, transcript }) => texts(text ?? transcript))
  return [...said, ...parts.flatMap(({ refusal }) => texts(refusal))].join('')
}

function texts(...values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === 'string')
}
