/** Another organisation: its keys, and how it signs and sends. Made of jose and canonicalize alone, so that nothing of ours judges ours. */
import canonicalize from 'canonicalize'
import { createHash, randomUUID } from 'node:crypto'
import { compactVerify, CompactSign, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose'
import { parseSse } from '../../src/wire/sse-parse.ts'

export interface Company {
  readonly did: string
  readonly kid: string
  readonly jwk: JWK
  readonly key: CryptoKey
  readonly alg: 'ES256' | 'EdDSA'
}

export type Members = Record<string, unknown>

export async function company(did = 'did:web:client.example', alg: Company['alg'] = 'ES256'): Promise<Company> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { did, kid: 'k1', jwk: await exportJWK(publicKey), key: privateKey, alg }
}

/** The option `keys` of a server that knows these companies. */
export function pinned(...companies: readonly Company[]) {
  return Object.fromEntries(companies.map(({ did, kid, jwk }) => [did, { keys: [{ ...jwk, kid }] }]))
}

export function hashOf({ sig: _, ...members }: Members): string {
  return createHash('sha256')
    .update(canonicalize(members) as string)
    .digest('hex')
}

/** `isNamed` false: the signature does not say which key has made it. */
export async function signed(by: Company, members: Members, isNamed = true): Promise<Members & { sig: string }> {
  const payload = new TextEncoder().encode(`{"sha256":"${hashOf(members)}"}`)
  const header = { alg: by.alg, ...(isNamed && { kid: `${by.did}#${by.kid}` }), typ: 'uamp+jws' }
  const [head, , signature] = (await new CompactSign(payload).setProtectedHeader(header).sign(by.key)).split('.')
  return { ...members, sig: `${head}..${signature}` }
}

/** The message that a company would send. */
export function message(by: Company, to: string, more: Members = {}): Members {
  return {
    id: `urn:uuid:${randomUUID()}`,
    ts: new Date().toISOString(),
    from: by.did,
    to: [to],
    intent: 'ask',
    body: { type: 'text/plain', content: 'hello' },
    ...more,
  }
}

/** Whether a signature is one by the key that a DID document publishes. */
export async function isSignedBy(envelope: Members, document: Members): Promise<boolean> {
  const [head = '', , signature] = String(envelope['sig']).split('.')
  const { kid, alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string; alg: string }
  const methods = document['verificationMethod'] as { id: string; publicKeyJwk: JWK }[]
  const method = methods.find(({ id }) => id === kid)
  if (!method || document['id'] !== envelope['from']) return false
  const payload = Buffer.from(`{"sha256":"${hashOf(envelope)}"}`).toString('base64url')
  await compactVerify(`${head}.${payload}.${signature}`, await importJWK(method.publicKeyJwk, alg))
  return true
}

const TYPE = { 'content-type': 'application/uamp+json;v=1' }

export function post(url: string, envelope: Members | string, headers: Record<string, string> = {}): Promise<Response> {
  const body = typeof envelope === 'string' ? envelope : JSON.stringify(envelope)
  return fetch(`${url}/v1/messages`, { method: 'POST', body, headers: { ...TYPE, ...headers } })
}

export interface Frame {
  readonly delta_seq: number
  readonly stream_id: string
  readonly ts: string
  readonly type: string
  readonly payload: Members
}

/** Where the stream of an accepted message is. */
export function streamOf(accepted: Response): string {
  return new URL(accepted.headers.get('location') ?? '', accepted.url).href
}

/** Reads a stream until it ends, or has given so many frames. */
export async function frames(
  url: string,
  {
    headers = {},
    most = Infinity,
    raw,
    onFrame,
  }: { headers?: Record<string, string>; most?: number; raw?: string[]; onFrame?: (frame: Frame) => void } = {},
): Promise<Frame[]> {
  const stop = new AbortController()
  const response = await fetch(url, { headers, signal: stop.signal })
  if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`)
  const found: Frame[] = []
  for await (const { data } of parseSse(response.body)) {
    raw?.push(data)
    const frame = JSON.parse(data) as Frame
    found.push(frame)
    onFrame?.(frame)
    if (found.length >= most) break
  }
  stop.abort()
  return found
}

/** Everything that was said in chunks of text. */
export function textIn(all: readonly Frame[]): string {
  return all.map(({ type, payload }) => (type === 'chunk' && typeof payload['text'] === 'string' ? payload['text'] : '')).join('')
}

/** The hash that the end of a stream must have, of the frames as they came. */
export function chainOf(raw: readonly string[]): string {
  const hash = createHash('sha256')
  for (const frame of raw) hash.update(`${frame}\n`)
  return hash.digest('hex')
}
