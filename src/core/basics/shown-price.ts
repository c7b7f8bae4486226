import type { Capabilities } from '../../protocol/capabilities.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { AgentPrice } from '../ports/payments.ts'
import { parseAmount } from '../../protocol/money.ts'
import { toolPriceOf } from './price.ts'

/** A price as clients are shown it. All amounts are texts, and those of tokens are for a million of them. */
export interface ShownPrice {
  readonly currency: string
  readonly call?: string
  readonly input?: string
  readonly cached?: string
  readonly output?: string
  readonly audio_second?: string
  readonly reserve?: string
  readonly free?: { readonly calls: number; readonly per: string }
  /** By name. Without an amount: it depends on the call. */
  readonly tools?: Readonly<Record<string, { readonly amount?: string; readonly currency: string }>>
}

type Priced = Pick<AgentPort, 'price' | 'tools'>

/** What an agent and its tools cost. Undefined: nothing. */
export function shownPrice({ price, tools = [] }: Priced): ShownPrice | undefined {
  const byTool = shownTools(price, tools)
  if (!price && !byTool) return undefined
  const { currency = 'USD', call, input, cached, output, audioSecond, reserve, free } = price ?? {}
  return {
    currency,
    ...(call !== undefined && { call }),
    ...(input !== undefined && { input }),
    ...(cached !== undefined && { cached }),
    ...(output !== undefined && { output }),
    ...(audioSecond !== undefined && { audio_second: audioSecond }),
    ...(reserve !== undefined && { reserve }),
    ...(free && { free: { calls: free.calls, per: free.per } }),
    ...(byTool && { tools: byTool }),
  }
}

function shownTools(price: AgentPrice | undefined, tools: NonNullable<AgentPort['tools']>): ShownPrice['tools'] {
  const named = Object.entries(price?.tools ?? {}).map(([name, each]) => [name, toolPriceOf(each, price?.currency)] as const)
  const own = tools.flatMap((tool) => (tool.price ? [[tool.name, tool.price] as const] : []))
  const all = new Map([...named, ...own])
  if (all.size === 0) return undefined
  return Object.fromEntries(
    [...all].map(([name, each]) => [name, { ...('amount' in each && { amount: each.amount }), currency: each.currency ?? 'USD' }]),
  )
}

/** The capabilities of an agent as clients are told them: with its price, as `extensions.uamp.price`. */
export function toldCapabilities(agent: AgentPort, capabilities: Capabilities = agent.capabilities): Capabilities {
  const price = shownPrice(agent)
  if (!price) return capabilities
  const { extensions } = capabilities
  const uamp = extensions?.['uamp']
  return { ...capabilities, extensions: { ...extensions, uamp: { ...(isRecord(uamp) && uamp), price } } }
}

/** The price in words: `$0.01 a call, $3 in, $15 out for a million tokens`. Empty if the agent costs nothing. */
export function priceWords(agent: Priced): string {
  const shown = shownPrice(agent)
  if (!shown) return ''
  const { currency, call, input, cached, output, audio_second, free, tools = {} } = shown
  const money = (amount: string, of = currency): string => (of === 'USD' ? `$${amount}` : `${amount} ${of}`)
  const tokens = [
    ...(input === undefined ? [] : [`${money(input)} in`]),
    ...(cached === undefined ? [] : [`${money(cached)} cached`]),
    ...(output === undefined ? [] : [`${money(output)} out`]),
  ]
  const perTool = Object.entries(tools).map(
    ([name, { amount, currency: of }]) => `${name} ${amount === undefined ? 'by what it is asked' : money(amount, of)}`,
  )
  return [
    ...(call === undefined ? [] : [`${money(call)} a call`]),
    ...(tokens.length === 0 ? [] : [`${tokens.join(', ')} for a million tokens`]),
    ...(audio_second === undefined ? [] : [`${money(audio_second)} for a second of audio`]),
    ...(perTool.length === 0 ? [] : [`tools: ${perTool.join(', ')}`]),
    ...(free ? [`${free.calls} free ${free.calls === 1 ? 'call' : 'calls'} a ${free.per}`] : []),
  ].join('; ')
}

/**
 * The price as lists of models have it since OpenRouter: US dollars for one token and one request, as texts. Other currencies would be
 * taken for dollars, so they are under `uamp` alone, with the exact texts.
 */
export function modelPricing(agent: Priced): Slot | undefined {
  const uamp = shownPrice(agent)
  if (!uamp) return undefined
  if (uamp.currency !== 'USD') return { uamp }
  const { call, input, cached, output } = uamp
  return {
    prompt: perToken(input),
    completion: perToken(output),
    request: call === undefined ? '0' : plain(parseAmount(call) ?? 0n, AMOUNT_DECIMALS),
    ...(cached !== undefined && { input_cache_read: perToken(cached) }),
    uamp,
  }
}

const AMOUNT_DECIMALS = 9
/** A token is a millionth of what a price is for. */
const TOKEN_DECIMALS = AMOUNT_DECIMALS + 6

function perToken(text: string | undefined): string {
  return plain(text === undefined ? 0n : (parseAmount(text) ?? 0n), TOKEN_DECIMALS)
}

function plain(amount: bigint, decimals: number): string {
  const digits = amount.toString().padStart(decimals + 1, '0')
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, '')
}
