import { OpenAI as OpenAI5 } from 'openai5'
import { makeParseableResponseFormat } from 'openai5/lib/parser'
import { OpenAI as OpenAI6 } from 'openai6'
import { zodResponseFormat as zodResponseFormat6 } from 'openai6/helpers/zod'
import { OpenAI as OpenAI7, type ClientOptions } from 'openai7'
import { zodResponseFormat as zodResponseFormat7 } from 'openai7/helpers/zod'
import * as z from 'zod'

export type { APIError, OpenAI } from 'openai7'
type ResponseFormatOf = typeof zodResponseFormat7

export interface Version {
  readonly version: string
  /** All of them typed as the newest: what differs between them is named here, and nowhere else. */
  readonly OpenAI: typeof OpenAI7
  readonly zodResponseFormat: ResponseFormatOf
}

/** The helper of 5 knows zod 3 alone. This is what it is made of, with zod's own JSON Schema. */
const zodResponseFormat5 = ((schema: z.ZodType, name: string) =>
  makeParseableResponseFormat({ type: 'json_schema', json_schema: { name, strict: true, schema: z.toJSONSchema(schema) } }, (content) =>
    schema.parse(JSON.parse(content)),
  )) as unknown as ResponseFormatOf

export const versions: readonly Version[] = [
  { version: '7.53.0', OpenAI: OpenAI7, zodResponseFormat: zodResponseFormat7 },
  {
    version: '6.49.0',
    OpenAI: OpenAI6 as unknown as typeof OpenAI7,
    zodResponseFormat: zodResponseFormat6 as unknown as ResponseFormatOf,
  },
  { version: '5.23.2', OpenAI: OpenAI5 as unknown as typeof OpenAI7, zodResponseFormat: zodResponseFormat5 },
]

export interface Client {
  readonly openai: OpenAI7
  /** How often it asked the server. */
  attempts(): number
}

/** A client of this version that counts its requests. `at` is below the server's address. */
export function clientOf({ OpenAI }: Version, url: string, { at = '/v1', ...options }: ClientOptions & { at?: string } = {}): Client {
  let requests = 0
  const counting: typeof fetch = (...request) => {
    requests++
    return fetch(...request)
  }
  const openai = new OpenAI({ baseURL: url + at, apiKey: 'any', fetch: counting, ...options })
  return { openai, attempts: () => requests }
}

/** The messages of a user who says just this. */
export const user = (content: string) => ({ model: 'demo', messages: [{ role: 'user' as const, content }] })

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
