import { parseJson } from '../../protocol/json.ts'
import { UampError } from '../../protocol/errors.ts'

/** The JSON of a body. One of more than `limit` bytes is given up. */
export async function readJson(name: string, body: AsyncIterable<Uint8Array>, limit: number): Promise<unknown> {
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let size = 0
  for await (const chunk of body) {
    if ((size += chunk.length) > limit) throw new UampError('provider_error', `${name} sent more than ${limit} bytes`)
    pieces.push(decoder.decode(chunk, { stream: true }))
  }
  try {
    return parseJson(pieces.join(''))
  } catch (cause) {
    throw new UampError('provider_error', `${name} answered with something that is not JSON: is the address right?`, { cause })
  }
}
