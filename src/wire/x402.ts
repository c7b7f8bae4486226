import { base64 } from '../protocol/base64.ts'
import { fieldsOf, isRecord, recordsIn, type Slot } from '../protocol/json.ts'

/** What the scheme `exact` asks for, as x402 version 2 writes it. */
export interface Exact {
  readonly scheme: 'exact'
  /** CAIP-2: `eip155:8453`. */
  readonly network: string
  /** In the smallest units of the asset. */
  readonly amount: string
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  /** The EIP-712 domain of the asset. */
  readonly extra: { readonly name: string; readonly version: string }
}

/** The names of networks in version 1. */
const NAMES: Readonly<Record<string, string>> = {
  'eip155:1': 'ethereum',
  'eip155:137': 'polygon',
  'eip155:1328': 'sei-testnet',
  'eip155:1329': 'sei',
  'eip155:1514': 'story',
  'eip155:2741': 'abstract',
  'eip155:3338': 'peaq',
  'eip155:4689': 'iotex',
  'eip155:8453': 'base',
  'eip155:11124': 'abstract-testnet',
  'eip155:11155111': 'sepolia',
  'eip155:41923': 'educhain',
  'eip155:43113': 'avalanche-fuji',
  'eip155:43114': 'avalanche',
  'eip155:80002': 'polygon-amoy',
  'eip155:84532': 'base-sepolia',
}

/** The name of a network in version 1; its own, if that version has none for it. */
export function networkName(network: string): string {
  return NAMES[network] ?? network
}

/** What a client of version 1 is asked for. */
export function exactV1(exact: Exact, { resource, description }: { readonly resource: string; readonly description: string }): Slot {
  const { amount, network, ...same } = exact
  return { ...same, network: networkName(network), maxAmountRequired: amount, resource, description, mimeType: 'application/json' }
}

function isExact(entry: Slot): entry is Slot & Exact {
  const { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra } = entry
  const texts = [network, amount, asset, payTo]
  return scheme === 'exact' && texts.every((each) => typeof each === 'string') && typeof maxTimeoutSeconds === 'number' && isRecord(extra)
}

export interface Required {
  readonly accepts: readonly Exact[]
  /** The address of what is paid for. */
  readonly resource: string
  readonly description: string
  /** Why the last payment was not taken. */
  readonly error: string
}

/** What `extra.x402` of a question for money asks for. Undefined: it cannot be paid by x402. */
export function requiredIn(x402: unknown, about: Pick<Required, 'description' | 'error'>): Required | undefined {
  const { accepts: given, resource } = fieldsOf(x402)
  const accepts = recordsIn(given).filter(isExact)
  const { url } = fieldsOf(resource)
  return accepts.length > 0 ? { accepts, resource: typeof url === 'string' ? url : '', ...about } : undefined
}

/** `PaymentRequired` of version 2, for the header and for A2A. */
export function requiredV2({ accepts, resource, description, error }: Required): Slot {
  return { x402Version: 2, error, resource: { url: resource, description, mimeType: 'application/json' }, accepts }
}

/** `PaymentRequirementsResponse` of version 1, for the body. */
export function requiredV1({ error, accepts, ...about }: Required): Slot {
  return { x402Version: 1, error, accepts: accepts.map((exact) => exactV1(exact, about)) }
}

/** What `/settle` of a facilitator told, as both versions repeat it to the payer. */
export interface Receipt {
  readonly success: boolean
  readonly transaction: string
  readonly network: string
  readonly payer?: string | undefined
  readonly errorReason?: string | undefined
}

export function isReceipt(value: unknown): value is Receipt & Slot {
  if (!isRecord(value)) return false
  return typeof value['success'] === 'boolean' && typeof value['transaction'] === 'string' && typeof value['network'] === 'string'
}

/** The headers that tell a payer of both versions what became of a payment. */
export function receiptHeaders(receipt: Receipt): Record<string, string> {
  const { success, transaction, network, payer, errorReason } = receipt
  const told = { success, transaction, network, ...(payer !== undefined && { payer }), ...(errorReason !== undefined && { errorReason }) }
  return { 'payment-response': header(told), 'x-payment-response': header({ ...told, network: networkName(network) }) }
}

/** An object as the value of a header. */
export function header(value: Slot): string {
  return base64(new TextEncoder().encode(JSON.stringify(value)))
}
