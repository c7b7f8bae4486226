/** Checks signatures of answers. Its own module, so that only those who verify load it. */
import { bytesIn } from '../protocol/base64.ts'
import { hashJson, sha256 } from '../protocol/canonical-json.ts'
import type { ContentItem } from '../protocol/content.ts'
import type { EventOf } from '../protocol/events.ts'
import { fieldsOf, isRecord, recordsIn } from '../protocol/json.ts'
import { gatherInput, type InputEvent } from '../protocol/gather-input.ts'
import { answerText, isOnlyWords, requestMessages } from '../protocol/signed-parts.ts'

/** What is to be checked. Leave out what is not known: then it is not compared. */
export interface Signed {
  readonly signature: string
  /** The answer: its text, or its content items. */
  readonly response?: string | readonly ContentItem[] | undefined
  /** The messages as the protocol hashes them: `messages` of Chat Completions, `input` of Responses, else the UAMP messages. */
  readonly request?: unknown
}

export interface VerifyOptions {
  /** The keys, as a JWK set. Default: those that the issuer publishes. */
  readonly jwks?: unknown
  readonly fetch?: typeof globalThis.fetch | undefined
  /**
   * Who must have signed: a server, which then may be any of its agents, or one agent. Without `jwks` the keys are the issuer's own, and
   * then only this tells the right issuer from any other.
   */
  readonly issuer?: string | undefined
  /** Milliseconds since 1970. Default: now. */
  readonly now?: number | undefined
}

/** What a signature says, and whether that is so. */
export interface Verified {
  /** True if the signature is the issuer's, and everything that was compared is what it covers. */
  readonly valid: boolean
  /** Why it is not valid. */
  readonly problems: readonly string[]
  /** It is old. That does not make it less true: it is still evidence of what was said. */
  readonly expired: boolean
  readonly claims: Readonly<Record<string, unknown>>
  /** What was compared: `response`, `output`, `request`. */
  readonly compared: readonly string[]
}

/** Keys are small: what is larger is something else. */
const JWKS_BYTES = 1024 * 1024
const JWKS_MS = 10_000

/** What WebCrypto calls the algorithms that a server may sign with. A secret that both sides know proves nothing to others, so there is none. */
const ALGORITHMS: Readonly<Record<string, { readonly name: string; readonly hash?: string; readonly namedCurve?: string }>> = {
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  ES256: { name: 'ECDSA', hash: 'SHA-256', namedCurve: 'P-256' },
  EdDSA: { name: 'Ed25519' },
}

/** Checks a signature. Rejects only if the keys cannot be had; a wrong signature is a result. */
export async function verifySigned({ signature, response, request }: Signed, options: VerifyOptions = {}): Promise<Verified> {
  const { header, claims, signed, bytes } = partsOf(signature)
  const problems: string[] = []
  const compared: string[] = []
  const alg = textIn(header['alg'])
  const algorithm = Object.hasOwn(ALGORITHMS, alg) ? ALGORITHMS[alg] : undefined
  const issuer = textIn(claims['iss'])
  const isResponse = typeof claims['response_hash'] === 'string' && header['crit'] === undefined
  if (!algorithm || !bytes || !signed || !isResponse) problems.push('This is no signature of a response')
  else if (header['typ'] !== undefined && header['typ'] !== 'response+jwt') problems.push('This signs something else than a response')
  else if (options.issuer !== undefined && !isBy(issuer, options.issuer))
    problems.push(`${issuer || 'Nobody'} signed it, who was not expected`)
  else {
    const keys = keysFor(header, options.jwks ?? (await fetchKeys(issuer, options.fetch)))
    if (keys.length === 0) problems.push('The issuer has no such key')
    else if (!(await isSigned(keys, algorithm, { signed, bytes }))) problems.push('The signature is not the issuer’s, or was changed')
  }
  const compare = async (name: string, claim: string, hash: Promise<string>): Promise<void> => {
    compared.push(name)
    if ((await hash) !== claims[claim]) problems.push(`The ${name} is not the one that was signed`)
  }
  if (response !== undefined) {
    await compare('response', 'response_hash', sha256(typeof response === 'string' ? response : answerText(response)))
    const isMore = typeof response !== 'string' && (!isOnlyWords(response) || claims['output_hash'] !== undefined)
    if (isMore) await compare('output', 'output_hash', hashJson(response))
  }
  if (request !== undefined) await compare('request', 'request_hash', hashJson(request))
  const expired = Number(claims['exp']) * 1000 < (options.now ?? Date.now())
  return { valid: problems.length === 0, problems, expired, claims, compared }
}

function partsOf(signature: string) {
  const parts = signature.split('.')
  const [header, claims] = parts.slice(0, 2).map((part) => jsonIn(bytesIn(plain(part))))
  const signed = parts.length === 3 ? parts.slice(0, 2).join('.') : undefined
  return { header: fieldsOf(header), claims: fieldsOf(claims), signed, bytes: bytesIn(plain(parts[2] ?? '')) }
}

/** Nothing, if it is something else: claims are what a stranger wrote. */
function textIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function plain(base64Url: string): string {
  return base64Url.replaceAll('-', '+').replaceAll('_', '/')
}

function jsonIn(bytes: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}

/** The request of a client of UAMP events, in the form that is hashed. */
export function requestOf(inputs: readonly InputEvent[]): object[] {
  return requestMessages(gatherInput(inputs, () => '').messages)
}

/** What the client of a response checks. `request`: as in `Signed`. */
export interface VerifyResponseOptions extends VerifyOptions {
  readonly request?: unknown
}

type Done = Pick<EventOf<'response.done'>, 'signature' | 'response'>

/** Checks the signature of a `response.done`. Where an agent elsewhere signed, too, `issuer` says which of both. */
export async function verifyDone({ signature, response }: Done, options: VerifyResponseOptions = {}): Promise<Verified> {
  const { request, ...rest } = options
  const beside = fieldsOf(response.extensions?.['uamp'])['signature']
  const all = [signature, beside].filter((each) => typeof each === 'string')
  const by = (each: string): boolean => options.issuer === undefined || isBy(textIn(partsOf(each).claims['iss']), options.issuer)
  const chosen = all.find(by) ?? all[0]
  if (chosen === undefined) return { valid: false, problems: ['The response is not signed'], expired: false, claims: {}, compared: [] }
  return verifySigned({ signature: chosen, response: response.output, request }, rest)
}

/** True if `issuer` is `expected`, or one of its agents. */
function isBy(issuer: string, expected: string): boolean {
  const [one, other] = [byNumber(issuer), byNumber(expected.replace(/\/+$/, ''))]
  return one === other || (one.startsWith(`${other}/agents/`) && !one.slice(`${other}/agents/`.length).includes('/'))
}

/** `localhost` is the name of the loopback address everywhere. */
function byNumber(url: string): string {
  return url.replace(/^(https?:\/\/)localhost(?=[:/]|$)/, '$1127.0.0.1')
}

function keysFor(header: Readonly<Record<string, unknown>>, jwks: unknown): Readonly<Record<string, unknown>>[] {
  const all = recordsIn(fieldsOf(jwks)['keys'])
  return all.filter(
    (key) => key['kid'] === header['kid'] && (key['alg'] === undefined || key['alg'] === header['alg']) && key['use'] !== 'enc',
  )
}

async function isSigned(
  keys: readonly Readonly<Record<string, unknown>>[],
  algorithm: { readonly name: string },
  { signed, bytes }: { readonly signed: string; readonly bytes: Uint8Array },
): Promise<boolean> {
  for (const { kty, n, e, crv, x, y } of keys) {
    try {
      const jwk = { kty, n, e, crv, x, y } as JsonWebKey
      const key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['verify'])
      if (await crypto.subtle.verify(algorithm, key, bytes as BufferSource, new TextEncoder().encode(signed))) return true
    } catch {
      // A key of another kind.
    }
  }
  return false
}

/** Plain HTTP is only for this machine: on the way from another, anybody could give their own keys. */
async function fetchKeys(issuer: string, fetch?: typeof globalThis.fetch): Promise<unknown> {
  const { href, protocol, hostname } = parsed(`${issuer}/.well-known/jwks.json`)
  // `https://good.example/agents/../files/1?` would take a file that somebody has put there for the keys.
  if (href !== `${issuer}/.well-known/jwks.json` || /[?#]|^\w+:\/\/[^/]*@/.test(issuer))
    throw new TypeError(`The issuer "${issuer}" is not an address`)
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLocal)) throw new TypeError(`The issuer "${issuer}" has no safe address`)
  return keysAt(href, fetch)
}

/** The JWK set at an address. */
export async function keysAt(url: string, fetch = globalThis.fetch): Promise<unknown> {
  try {
    const answer = await fetch(url, { redirect: 'error', credentials: 'omit', signal: AbortSignal.timeout(JWKS_MS) })
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`)
    const keys: unknown = JSON.parse(await shortText(answer))
    if (!isRecord(keys)) throw new Error('they are no JWK set')
    return keys
  } catch (cause) {
    throw new Error(`Cannot get the keys at ${url}: ${reasonOf(cause)}`, { cause })
  }
}

/** "fetch failed" alone says nothing. What its cause is depends on the runtime. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const { message, cause } = thrown
  return cause instanceof Error && cause.message !== '' ? `${message}: ${cause.message}` : message
}

function parsed(url: string): { readonly href: string; readonly protocol: string; readonly hostname: string } {
  try {
    return new URL(url)
  } catch {
    return { href: url, protocol: '', hostname: '' }
  }
}

async function shortText(answer: Response): Promise<string> {
  const decoder = new TextDecoder()
  const reader = answer.body?.getReader()
  let text = ''
  for (let read = 0; reader;) {
    const { value, done } = await reader.read()
    if (done) break
    read += value.byteLength
    if (read > JWKS_BYTES) {
      await reader.cancel()
      throw new Error('they are larger than any JWK set')
    }
    text += decoder.decode(value, { stream: true })
  }
  return text + decoder.decode()
}
