import type { HttpClient } from '../../core/ports/http.ts'
import { KeptDocument } from '../../core/http/kept-document.ts'
import { signingKeys } from '../../envelope/did-document.ts'
import { didOf, didOfUrl, didUrl, webDid } from '../../envelope/did.ts'
import { readEnvelope } from '../../envelope/message.ts'
import { messageKey } from '../../envelope/schema.ts'
import { readSignature, verifySignature, type VerifyKey } from '../../envelope/signature.ts'
import { joinedBytes } from '../../protocol/bytes.ts'
import { UampError } from '../../protocol/errors.ts'
import { jsonIn, uampIn } from '../../protocol/json.ts'
import { callUpstream, shortBounds } from '../../upstream/upstream.ts'
import { explainError } from '../../wire/upstream.ts'

const DOCUMENT_BYTES = 64 * 1024
const DOCUMENT_MS = 10_000
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
  readonly #documents = new Map<string, KeptDocument<readonly VerifyKey[]>>()

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
      const keys = await this.#keysOf(didOf(from), { http, signal })
      const found = await keys.get()
      const isMissing = found && !found.some((key) => signature.kid === undefined || key.id === didUrl(signature.kid))
      const all = isMissing ? await keys.renewed() : found
      if (!all) throw new Error(`The keys of ${from} cannot be read`)
      await verifySignature(members, signature, all)
      if (messageKey(replyTo) !== messageKey(id) || uampIn(ext)['stream_sha256'] !== hash) throw new Error('It is of another answer')
    } catch (cause) {
      signal.throwIfAborted()
      throw new UampError('provider_error', `The answer of "${this.#name}" is not signed as it has to be`, { cause })
    }
  }

  /** Agents of one server have DIDs of their own, all below its host. */
  async #keysOf(did: string, by: Pick<Closing, 'http' | 'signal'>): Promise<KeptDocument<readonly VerifyKey[]>> {
    const { origin } = new URL(this.#url)
    const web = webDid(did)
    if (web?.host !== webDid(didOfUrl(origin))?.host) throw new Error(`${did} is not of ${origin}`)
    const known = this.#documents.get(did)
    if (known) return known
    const path = !web || web.path.length === 0 ? '/.well-known' : `/${web.path.join('/')}`
    const url = `${origin}${path}/did.json`
    const document = new KeptDocument<readonly VerifyKey[]>({
      monotonic: () => performance.now(),
      // Whoever waits for it is told.
      onFailure: () => undefined,
      fetch: async () => ({ value: await signingKeys(await this.#read(url, by), did), maxAgeMs: undefined }),
    })
    this.#documents.set(did, document)
    for (const oldest of this.#documents.keys()) if (this.#documents.size > MOST) this.#documents.delete(oldest)
    return document
  }

  async #read(url: string, { http, signal }: Pick<Closing, 'http' | 'signal'>): Promise<unknown> {
    const { body } = await callUpstream({
      name: `The DID document of "${this.#name}"`,
      http,
      signal,
      explain: explainError,
      request: { url, method: 'GET', headers: { accept: 'application/did+json, application/json' } },
      ...shortBounds(DOCUMENT_BYTES, DOCUMENT_MS),
    })
    const pieces: Uint8Array[] = []
    for await (const piece of body) pieces.push(piece)
    return jsonIn(new TextDecoder().decode(joinedBytes(pieces)))
  }
}
