import { isCurrency } from '../../protocol/money.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Exact } from '../../wire/x402.ts'

/** Payments on a chain by x402, in an asset that knows EIP-3009. Callers pay with the scheme `exact`. */
export interface X402Settings {
  /** The address that is paid. */
  readonly payTo: string
  /** CAIP-2: `eip155:8453` is Base, `eip155:84532` its test network. */
  readonly network: string
  /** The URL of a facilitator, which has `/verify` and `/settle`. */
  readonly facilitator: string
  /** Headers for it, such as its key. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The contract of the asset. Default: USDC, on the two networks above. */
  readonly asset?: string | undefined
  /** How many decimals the asset has. Default: 6. */
  readonly decimals?: number | undefined
  /** `name` and `version` of the asset's EIP-712 domain. Default: those of USDC. */
  readonly extra?: { readonly name: string; readonly version: string } | undefined
  /** The currency of prices that a unit of the asset pays. Default: `USD`. */
  readonly currency?: string | undefined
  /** How long a payment should be valid: longer than an answer takes. Default: 300. */
  readonly maxTimeoutSeconds?: number | undefined
  /** How long the facilitator may take for one answer. Default: 30,000. */
  readonly timeoutMs?: number | undefined
}

export interface X402Config extends Omit<Exact, 'scheme' | 'amount'> {
  readonly facilitator: string
  readonly headers: Readonly<Record<string, string>>
  readonly decimals: number
  readonly currency: string
  readonly timeoutMs: number
}

interface Asset {
  readonly asset: string
  readonly extra: Exact['extra']
}

const USDC: Readonly<Record<string, Asset>> = {
  'eip155:8453': { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', extra: { name: 'USD Coin', version: '2' } },
  'eip155:84532': { asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', extra: { name: 'USDC', version: '2' } },
}

const NETWORK = /^eip155:\d{1,20}$/
const ADDRESS = /^0x[0-9a-fA-F]{40}$/
/** More decimals than this no asset has. */
const DECIMALS = 36
const SECONDS = 86_400

/** Throws where something is missing or wrong, because a server that starts must be able to be paid. */
export function x402Config(given: X402Settings): X402Config {
  const { network, payTo, facilitator, headers = {}, decimals = 6, currency = 'USD', maxTimeoutSeconds = 300, timeoutMs = 30_000 } = given
  const usual = USDC[network]
  const asset = given.asset ?? usual?.asset
  const extra = given.extra ?? (asset === usual?.asset ? usual?.extra : undefined)
  if (typeof network !== 'string' || !NETWORK.test(network)) throw wrong('network', 'must be an EVM network, such as "eip155:8453"')
  if (typeof payTo !== 'string' || !ADDRESS.test(payTo)) throw wrong('payTo', 'must be an address: 0x and 40 digits')
  if (asset === undefined)
    throw wrong('asset', `is missing: USDC is known on ${Object.keys(USDC).join(' and ')}; elsewhere name a contract`)
  if (typeof asset !== 'string' || !ADDRESS.test(asset)) throw wrong('asset', 'must be the address of a contract')
  if (typeof extra?.name !== 'string' || typeof extra.version !== 'string')
    throw wrong('extra', 'must have the name and version of the asset')
  if (!URL.canParse(facilitator)) throw wrong('facilitator', 'must be a URL')
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > DECIMALS) throw wrong('decimals', `must be a number up to ${DECIMALS}`)
  if (!isCurrency(currency)) throw wrong('currency', 'must be a name such as "USD"')
  if (!(maxTimeoutSeconds >= 10 && maxTimeoutSeconds <= SECONDS)) throw wrong('maxTimeoutSeconds', `must be between 10 and ${SECONDS}`)
  if (!(timeoutMs > 0)) throw wrong('timeoutMs', 'must be a number of milliseconds')
  const url = facilitator.replace(/\/+$/, '')
  return { network, payTo, asset, extra, facilitator: url, headers, decimals, currency, maxTimeoutSeconds, timeoutMs }
}

function wrong(name: string, problem: string): UampError {
  return new UampError('invalid_request', `payments.x402.${name} ${problem}`)
}

const UNIT_DECIMALS = 9

/** An amount of 10⁻⁹ units in the smallest units of an asset, rounded up if the asset has fewer decimals. */
export function toAtomic(amount: bigint, decimals: number): bigint {
  if (decimals >= UNIT_DECIMALS) return amount * 10n ** BigInt(decimals - UNIT_DECIMALS)
  const divisor = 10n ** BigInt(UNIT_DECIMALS - decimals)
  return (amount + divisor - 1n) / divisor
}

/** The opposite, rounded down: the ledger never has more than came. */
export function fromAtomic(atomic: bigint, decimals: number): bigint {
  if (decimals >= UNIT_DECIMALS) return atomic / 10n ** BigInt(decimals - UNIT_DECIMALS)
  return atomic * 10n ** BigInt(UNIT_DECIMALS - decimals)
}

/** What a payer has to sign for an amount. */
export function exactFor({ network, asset, payTo, maxTimeoutSeconds, extra, decimals }: X402Config, amount: bigint): Exact {
  return { scheme: 'exact', network, amount: `${toAtomic(amount, decimals)}`, asset, payTo, maxTimeoutSeconds, extra }
}
