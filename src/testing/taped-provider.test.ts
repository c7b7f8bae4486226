import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startUpstream } from '../../test/providers/upstream/index.ts'
import { fetchHttp } from '../core/http/fetch-http.ts'
import type { ModelRequest, Provider } from '../core/ports/provider.ts'
import type { Draft } from '../protocol/events.ts'
import { anthropic } from '../providers/anthropic/index.ts'
import { google } from '../providers/google/index.ts'
import { openaiCompatible } from '../providers/openai-compatible/index.ts'
import { openai } from '../providers/openai/index.ts'
import { recordProvider, replayProvider } from './taped-provider.ts'

const apiKey = 'sk-very-secret'
const providers: Readonly<Record<string, { of: (url: string) => Provider; host: string; fixtures: string }>> = {
  openai: { of: (url) => openai({ apiKey, baseUrl: `${url}/v1` }), host: '/openai', fixtures: 'responses' },
  anthropic: { of: (url) => anthropic({ apiKey, baseUrl: url }), host: '/anthropic', fixtures: 'anthropic' },
  google: { of: (url) => google({ apiKey, baseUrl: `${url}/v1beta` }), host: '/google', fixtures: 'google' },
  compatible: {
    of: (url) => openaiCompatible({ name: 'mine', apiKey, baseUrl: `${url}/v1` }),
    host: '/compatible',
    fixtures: 'compatible',
  },
}

const asking = (model: string): ModelRequest => ({
  model,
  messages: [{ role: 'user', content: 'Grüße' }],
  config: { modalities: ['text'] },
})

async function generate(provider: Provider, model: string): Promise<Draft[]> {
  const drafts: Draft[] = []
  const context = { signal: new AbortController().signal, http: fetchHttp(), sessionId: 's' }
  for await (const draft of provider.generate(asking(model), context)) drafts.push(draft)
  return drafts
}

test.each(Object.entries(providers))('%s says the same from the recording', async (_, { of, host }) => {
  const { url } = await startUpstream()
  const lines: string[] = []
  const recording = recordProvider(of(`${url}${host}`), { write: (line) => void lines.push(line) })
  const models = ['thinking-only', 'text+split']
  const live = [await generate(recording, 'thinking-only'), await generate(recording, 'text+split')]
  expect(lines.join()).not.toContain(apiKey)

  const replayed = replayProvider(of(`http://nowhere.invalid${host}`), lines)
  for (const [at, model] of models.entries()) expect(await generate(replayed, model)).toEqual(live[at])
  expect(JSON.stringify(live)).toContain('世界')
  await expect(generate(replayed, 'text')).rejects.toThrow(/^The recording has no answer left for POST/)
})

test.each(Object.entries(providers))('%s is played from a file', async (_, { of, fixtures }) => {
  const file = join(import.meta.dirname, `../../test/providers/upstream/fixtures/${fixtures}/thinking-only.jsonl`)
  const drafts = await generate(replayProvider(of('http://nowhere.invalid'), readFileSync(file, 'utf8')), 'thinking-only')
  const thoughts = drafts.map((draft) => (draft.type === 'thinking' ? draft.content : '')).join('')
  expect(thoughts).toBe('Hm, 世界.')
})
