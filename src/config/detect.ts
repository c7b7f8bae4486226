import { connect } from 'node:net'
import { fetchHttp } from '../core/http/fetch-http.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Provider } from '../core/ports/provider.ts'
import { isRecord } from '../protocol/json.ts'
import { wholeAnswer } from '../wire/upstream.ts'
import type { AssembleContext } from './assemble.ts'
import { PROVIDERS, type ProviderKind } from '../providers/by-name.ts'

/** A model that is served without a config. */
export interface Detected {
  readonly agent: AgentPort
  /** Tells the user why the model is served. */
  readonly note: string
}

/** How long Ollama has to answer. Without Ollama the connection is refused at once; a busy machine needs some time. */
const PROBE_MS = 1_000
/** The most bytes of Ollama's list of models. */
const TAGS_BYTES = 4 * 1024 * 1024
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

type Context = Pick<AssembleContext, 'env' | 'log'>

/** A model of each provider with a key in the environment, and one of the Ollama on this machine. */
export async function detectModels({ env, log }: Context): Promise<readonly Detected[]> {
  const found = [
    keyed({ name: 'openai', kind: PROVIDERS.openai }, { env, log }),
    keyed({ name: 'anthropic', kind: PROVIDERS.anthropic }, { env, log }),
    keyed({ name: 'gemini', kind: PROVIDERS.google }, { env, log }),
    local({ env, log }),
  ]
  return (await Promise.all(found)).flatMap((detected) => detected ?? [])
}

async function keyed(
  { name, kind }: { name: string; kind: ProviderKind & { model: string } },
  { env, log }: Context,
): Promise<Detected | undefined> {
  const variable = kind.keys.find((key) => (env[key] ?? '') !== '')
  if (variable === undefined) return undefined
  const baseUrl = kind.address === undefined ? undefined : env[kind.address]
  const provider = await kind.create({ name, apiKey: env[variable] ?? '', ...(baseUrl && { baseUrl }) })
  return { agent: await modelAgent({ name, provider, model: kind.model, log }), note: `${name} is ${kind.model}, as ${variable} is set` }
}

async function local({ env, log }: Context): Promise<Detected | undefined> {
  const url = ollamaUrl(env['OLLAMA_HOST'])
  const model = url === undefined ? undefined : await ollamaModel(url)
  if (url === undefined || model === undefined) return undefined
  const provider = await PROVIDERS.ollama.create({ name: 'ollama', baseUrl: `${url}/v1` })
  return { agent: await modelAgent({ name: 'ollama', provider, model, log }), note: `ollama is ${model}, of the Ollama at ${url}` }
}

interface Named {
  readonly name: string
  readonly provider: Provider
  readonly model: string
  readonly log: Context['log']
}

async function modelAgent({ name, provider, model, log }: Named): Promise<AgentPort> {
  const { llmAgent } = await import('../agents/llm/index.ts')
  const agent = llmAgent({ name, description: `${model}, without instructions or tools`, model: { provider, model }, log })
  await agent.ready
  return agent
}

/** Ollama's address, by its own variable. Only this machine's Ollama is asked, because another one may not be the user's. */
export function ollamaUrl(host = '127.0.0.1:11434'): string | undefined {
  const given = host.trim().replace(/^0\.0\.0\.0/, '127.0.0.1')
  const text = /^https?:\/\//.test(given) ? given : `http://${given}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !LOOPBACK.test(url.hostname)) return undefined
  return `${url.protocol}//${url.hostname}:${url.port === '' ? '11434' : url.port}`
}

/** The model that was changed last, which Ollama lists first; undefined if there is none, or no Ollama. */
async function ollamaModel(url: string): Promise<string | undefined> {
  // Most machines have none, and the first `fetch` of a process takes a tenth of a server's start.
  if (!(await isListening(new URL(url)))) return undefined
  try {
    const timeouts = { firstByteMs: PROBE_MS, idleMs: PROBE_MS, totalMs: PROBE_MS }
    const request = { url: `${url}/api/tags`, method: 'GET', headers: {}, signal: new AbortController().signal } as const
    const answer = await fetchHttp().request({ ...request, maxBytes: TAGS_BYTES, timeouts })
    const { models } = await wholeAnswer('ollama', answer.body)
    const names = (Array.isArray(models) ? models : []).flatMap((model: unknown) =>
      isRecord(model) && typeof model['name'] === 'string' ? [model['name']] : [],
    )
    return names.find((name) => !/embed|bge-|minilm/.test(name))
  } catch {
    return undefined
  }
}

function isListening({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), timeout: PROBE_MS })
    const end = (listening: boolean) => (): void => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false))
  })
}
