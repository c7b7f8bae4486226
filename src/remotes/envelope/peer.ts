import type { HttpClient } from '../../core/ports/http.ts'
import { signingKeys } from '../../envelope/did-document.ts'
import { didOf, didOfUrl, didUrl, webDid } from '../../envelope/did.ts'
import { readEnvelope } from '../../envelope/message.ts'
import { messageKey } from '../../envelope/schema.ts'
import { readSignature, verifySignature, type VerifyKey } from '../../envelope/signature.ts'
import { UampError } from '../../protocol/errors.ts'
import { uampIn } from '../../protocol/json.ts'
import { callUpstream, shortBounds } from '../../upstream/upstream.ts'
import { explainError, readJson } from '../../wire/upstream.ts'

const DOCUMENT_BYTES = 64 * 1024
const DOCUMENT_MS = 10_000
/** How long keys are used before they are read again. */
const AGE_MS = 5 * 60_000
/** Agents of the other server whose keys are kept. */
const MOST = 100

export interface Closing {
  /** The message that was asked. */
  readonly id: string
  /** What came, as it is hashed. */
  readonly hash: string
  readonly http: HttpClient
  readonly signal: AbortSignal
}

/** The other side, as its signatures show it. */
export class Peer {
  readonly #name: string
  readonly #url: string
  readonly #known = new Map<string, { readonly keys: readonly VerifyKey[]; readonly at: number }>()

  constructor({ name, url }: { readonly name: string; readonly url: string }) {
    this.#name = name
    this.#url = url
  }

  /** Throws `provider_error` if the message that closes an exchange is not signed by the other side, or is of another answer. */
  async check(message: Uint8Array, { id, hash, http, signal }: Closing): Promise<void> {
    try {
      const { envelope, members } = readEnvelope(message)
      const { from, reply_to: replyTo = '', ext } = envelope
      const signature = readSignature(envelope.sig)
      const all = await this.#keysOf(didOf(from), signature.kid, { http, signal })
      await verifySignature(members, signature, all)
      if (messageKey(replyTo) !== messageKey(id) || uampIn(ext)['stream_sha256'] !== hash) throw new Error('It is of another answer')
    } catch (cause) {
      signal.throwIfAborted()
      throw new UampError('provider_error', `The answer of "${this.#name}" is not signed as it has to be`, { cause })
    }
  }

  /** Agents of one server have DIDs of their own, all below its host. A key that is not known is looked for in the document as it is now. */
  async #keysOf(did: string, kid: string | undefined, by: Pick<Closing, 'http' | 'signal'>): Promise<readonly VerifyKey[]> {
    const { origin } = new URL(this.#url)
    const web = webDid(did)
    if (web?.host !== webDid(didOfUrl(origin))?.host) throw new Error(`${did} is not of ${origin}`)
    const known = this.#known.get(did)
    const isFresh = known !== undefined && performance.now() - known.at < AGE_MS
    if (isFresh && known.keys.some(({ id }) => kid === undefined || id === didUrl(kid))) return known.keys
    const path = !web || web.path.length === 0 ? '/.well-known' : `/${web.path.join('/')}`
    const keys = await signingKeys(await this.#read(`${origin}${path}/did.json`, by), did)
    this.#known.set(did, { keys, at: performance.now() })
    for (const oldest of this.#known.keys()) if (this.#known.size > MOST) this.#known.delete(oldest)
    return keys
  }

  async #read(url: string, { http, signal }: Pick<Closing, 'http' | 'signal'>): Promise<unknown> {
    const name = `The DID document of "${this.#name}"`
    const { body } = await callUpstream({
      name,
      http,
      signal,
      explain: explainError,
      request: { url, method: 'GET', headers: { accept: 'application/did+json, application/json' } },
      ...shortBounds(DOCUMENT_BYTES, DOCUMENT_MS),
    })
    return readJson(name, body)
  }
}
