/** What a config says of money: prices, and how the server is paid. */
import * as z from 'zod/mini'
import { isCurrency, parseAmount } from '../protocol/money.ts'
import type { PlatformSettings } from '../payments/platform.ts'
import type { PaymentSettings } from '../payments/settings.ts'
import { x402Config, type X402Settings } from '../payments/x402/settings.ts'
import { UampError } from '../protocol/errors.ts'
import { present } from '../wire/fields.ts'
import type { Variables } from './environment.ts'
import type { Problems } from './problems.ts'

/** Digits that a number keeps exactly. With more of them, it is no longer what was written. */
const EXACT_DIGITS = 15
const text = z.optional(z.string())

/** YAML has numbers. A short one is exact, so it counts as its text. */
function amountText(value: unknown): string | undefined {
  if (typeof value !== 'number') return parseAmount(value) === undefined ? undefined : (value as string)
  const written = String(value)
  return parseAmount(written) !== undefined && written.replace(/\D/g, '').length <= EXACT_DIGITS ? written : undefined
}

const amount = z.pipe(
  z.custom<string | number>((value) => amountText(value) !== undefined, {
    error: ({ input }) =>
      typeof input === 'number' && input > 0
        ? `cannot be read exactly as a number: write it in quotes, with up to nine decimals, as in "0.05"`
        : 'must be an amount of 0 or more with up to nine decimals, such as "0.05"',
  }),
  z.transform((value) => amountText(value) ?? ''),
)
const currency = z.optional(z.custom<string>(isCurrency, 'must be the name of a currency in capitals, such as "USD"'))
const byName = z.optional(z.record(z.string(), amount, 'must be an object with an amount for each name'))

const FREE_CALLS = 'must be a whole number of calls, 0 or more'
const Free = z.strictObject(
  {
    calls: z.custom<number>((value) => Number.isSafeInteger(value) && (value as number) >= 0, FREE_CALLS),
    per: z.enum(['hour', 'day', 'month'], 'must be "hour", "day" or "month"'),
  },
  'must be an object, such as { calls: 10, per: day }',
)

/** An address on a chain. Without quotes, YAML reads its hexadecimal digits as a number. */
const address = (problem: string) =>
  z.string({ error: ({ input }) => (typeof input === 'number' ? 'is read as a number: write the address in quotes' : problem) })

const rates = {
  currency,
  call: z.optional(amount),
  input: z.optional(amount),
  cached: z.optional(amount),
  output: z.optional(amount),
  audioSecond: z.optional(amount),
  reserve: z.optional(amount),
  free: z.optional(Free),
}

/** What callers pay for an agent elsewhere, and for a model with tools. */
export const RemotePrice = z.strictObject(rates, 'must be an object, such as { call: "0.01" }')
export const ModelPrice = z.strictObject(
  { ...rates, tools: byName },
  'must be an object, such as { call: "0.01" } or { input: "3", output: "15" }',
)

/** What calls of an MCP server's tools cost. */
export const ToolPrices = byName

/** How the server is paid. */
export const PaymentsEntry = z.strictObject({
  perDay: z.optional(
    z.record(
      z.custom<string>(isCurrency, 'must be the name of a currency in capitals'),
      amount,
      'must be amounts by currency, such as { USD: "20" }',
    ),
  ),
  platform: z.optional(
    z.strictObject({
      url: z.string('must be the address of the other ledger, such as "https://pay.example/api/payments"'),
      token: text,
      tokenEnv: text,
      network: text,
      currency,
    }),
  ),
  x402: z.optional(
    z.strictObject({
      payTo: address('must be the address that is paid, in quotes, such as "0x2096…"'),
      network: z.string('must be the name of a chain, such as "eip155:84532"'),
      facilitator: z.string('must be the address of a facilitator, such as "https://x402.org/facilitator"'),
      asset: z.optional(address('must be the address of a contract, in quotes')),
      decimals: z.optional(z.number()),
      extra: z.optional(z.strictObject({ name: z.string(), version: z.string() })),
      currency,
      token: text,
      tokenEnv: text,
    }),
  ),
  ap2: z.optional(
    z.strictObject({
      issuers: z.record(z.string(), z.looseObject({ keys: z.array(z.looseObject({})) }), 'must be a JWK Set for each issuer'),
      payee: text,
      minorUnits: z.optional(z.record(z.string(), z.number())),
    }),
  ),
})
type PaymentsEntry = z.infer<typeof PaymentsEntry>

interface Reading {
  readonly variables: Variables
  readonly problems: Problems
}

/** The settings with their secrets from the environment. */
export function paymentsWith({ perDay, platform, x402, ap2 }: PaymentsEntry, reading: Reading): PaymentSettings {
  return present({
    perDay,
    platform: platform && platformWith(platform, reading),
    x402: x402 && x402With(x402, reading),
    ap2,
  })
}

function platformWith({ network, currency: of, ...given }: NonNullable<PaymentsEntry['platform']>, reading: Reading): PlatformSettings {
  const url = addressIn(given.url, ['platform', 'url'], reading)
  return { url, ...present({ token: tokenIn(given, 'platform', reading), network, currency: of }) }
}

function x402With({ facilitator, token, tokenEnv, ...given }: NonNullable<PaymentsEntry['x402']>, reading: Reading): X402Settings {
  const url = addressIn(facilitator, ['x402', 'facilitator'], reading)
  const shown = tokenIn({ token, tokenEnv }, 'x402', reading)
  const settings = { ...given, facilitator: url, ...(shown !== undefined && { headers: { authorization: `Bearer ${shown}` } }) }
  try {
    x402Config(settings)
  } catch (thrown) {
    const [, name = '', problem = ''] = /^payments\.x402\.(\w+) (.*)$/s.exec(UampError.from(thrown).message) ?? []
    reading.problems.add(['payments', 'x402', name], problem)
  }
  return settings
}

function addressIn(written: string, path: readonly string[], { variables, problems }: Reading): string {
  const place = ['payments', ...path]
  const url = variables.in(written, place)
  const isAddress = /^https?:\/\//.test(url) && URL.canParse(url)
  if (!isAddress && !problems.has(place)) problems.add(place, 'is not an address: write it as in "https://pay.example/api/payments"')
  return url
}

function tokenIn(
  { token, tokenEnv }: { readonly token?: string | undefined; readonly tokenEnv?: string | undefined },
  of: string,
  { variables, problems }: Reading,
): string | undefined {
  const path = ['payments', of]
  if (token !== undefined && tokenEnv !== undefined) problems.add([...path, 'tokenEnv'], 'contradicts "token": keep one of them')
  return variables.secret({ text: token, env: tokenEnv }, { path, field: 'token' })
}
