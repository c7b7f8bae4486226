import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { OpenAI } from 'openai7'
import { startUpstream } from '../../providers/upstream/index.ts'

/** The official clients, all on the same server. They do not retry, so that one call is one request. */
export async function officialClients(apiKey = 'key') {
  const upstream = await startUpstream()
  const { url } = upstream
  return {
    upstream,
    openai: new OpenAI({ apiKey, baseURL: `${url}/openai/v1`, maxRetries: 0 }),
    anthropic: new Anthropic({ apiKey, baseURL: `${url}/anthropic`, maxRetries: 0 }),
    google: new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${url}/google` } }),
  }
}

export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const one of stream) all.push(one)
  return all
}

/** What every vendor's `text` says. */
export const SAID = 'Hello from upstream. Grüße, 世界 👋🏽!'

export const weather = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

/** Ways to send the same stream. Whoever reads events instead of chunks sees no difference. */
export const deliveries = ['text', 'text+burst', 'text+split', 'text+crlf', 'text+comments', 'text+crlf+split+comments', 'text+slow']
