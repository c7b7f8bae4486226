import { fetchHttp } from '../../core/http/fetch-http.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { fieldsOf, recordsIn } from '../../protocol/json.ts'
import type { NamedModel } from '../../config/models.ts'
import { PROVIDERS } from '../../providers/by-name.ts'
import { wholeAnswer } from '../../wire/upstream.ts'
import { note, ok, wrong, type Check } from './check.ts'

/** How long a provider has to list its models. */
const LIMIT_MS = 5_000
const LIST_BYTES = 16 * 1024 * 1024

export interface Reached {
  readonly checks: readonly Check[]
  /** What the clocks of the providers say. */
  readonly times: readonly number[]
}

/** Asks each provider once for its models, all of them at the same time. Costs no tokens. */
export async function checkModels(models: readonly NamedModel[]): Promise<Reached> {
  const byProvider = new Map<string, NamedModel[]>()
  for (const model of models) {
    const key = JSON.stringify([model.type, model.provider])
    byProvider.set(key, [...(byProvider.get(key) ?? []), model])
  }
  const reached = await Promise.all([...byProvider.values()].map(checkProvider))
  return { checks: reached.map(({ check }) => check), times: reached.flatMap(({ time }) => time ?? []) }
}

async function checkProvider(models: readonly NamedModel[]): Promise<{ readonly check: Check; readonly time?: number }> {
  const [{ type, provider }] = models as readonly [NamedModel]
  const listing = (await PROVIDERS[type].create(provider)).listing
  const names = models.map(({ model }) => model).join(', ')
  const who = `${provider.name} (${names})`
  if (!listing) return { check: note('models', `${who} was not asked`, 'it has no list of models') }
  const timeouts = { firstByteMs: LIMIT_MS, idleMs: LIMIT_MS, totalMs: LIMIT_MS }
  const signal = new AbortController().signal
  const place = new URL(listing.url).origin
  try {
    const answer = await fetchHttp().request({ ...listing, method: 'GET', signal, maxBytes: LIST_BYTES, timeouts })
    const time = Date.parse(answer.headers.get('date') ?? '')
    return { check: await judged({ answer, models, who, place }), ...(Number.isFinite(time) && { time }) }
  } catch (thrown) {
    return { check: wrong('models', `${who} cannot be reached at ${place} (${reason(thrown)})`, remedy(type, provider.name)) }
  }
}

interface Answered {
  readonly answer: HttpAnswer
  readonly models: readonly NamedModel[]
  readonly who: string
  readonly place: string
}

async function judged({ answer, models, who, place }: Answered): Promise<Check> {
  const { status } = answer
  const [{ type, provider, keyAt }] = models as readonly [NamedModel]
  const keys: readonly string[] = PROVIDERS[type].keys
  // Google answers a wrong key with 400.
  if (status === 401 || status === 403 || (type === 'google' && status === 400)) {
    return wrong(
      'models',
      `${who} refuses the key (${status})`,
      `check ${keyAt ?? keys[0] ?? `providers.${provider.name}.apiKey`}, and that the key is still valid`,
    )
  }
  if (status === 404)
    return note('models', `${who} answers at ${place}, but lists no models`, `check providers.${provider.name}.baseUrl if it fails`)
  if (status >= 300) return wrong('models', `${who} answers with ${status}`, `try again later, or check providers.${provider.name}.baseUrl`)
  if (type !== 'ollama') return ok('models', `${who} can be reached`)
  const listed = recordsIn((await wholeAnswer(provider.name, answer.body))['data']).map((each) => String(fieldsOf(each)['id']))
  const missing = models.find(({ model }) => !listed.some((name) => name === model || name.split(':')[0] === model))
  if (missing) return wrong('models', `ollama does not have ${missing.model}`, `\`ollama pull ${missing.model}\` gets it`)
  return ok('models', `${who} can be reached`)
}

function reason(thrown: unknown): string {
  const { name, message, cause } = thrown as Error
  if (name === 'TimeoutError') return `no answer within ${LIMIT_MS / 1000} s`
  const { code } = fieldsOf(cause)
  return typeof code === 'string' ? code : message
}

function remedy(type: string, name: string): string {
  if (type === 'ollama') return 'start it with `ollama serve`, or set providers.ollama.baseUrl'
  return `check the network, a proxy, and providers.${name}.baseUrl`
}
