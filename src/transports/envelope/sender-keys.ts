import { Bucket } from '../../core/basics/bucket.ts'
import { KeptDocument } from '../../core/http/kept-document.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import type { Host } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { importedKey, signingKeys } from '../../envelope/did-document.ts'
import { didOf, didUrl, documentUrl } from '../../envelope/did.ts'
import type { VerifyKey } from '../../envelope/signature.ts'
import { joinedBytes } from '../../protocol/bytes.ts'
import { parseJson, recordsIn } from '../../protocol/json.ts'
import { UampError } from '../../protocol/errors.ts'
import type { OwnDid } from './own-did.ts'

/** Far more than a document with keys needs. */
const MOST_BYTES = 64 * 1024
const TOTAL_MS = 5_000
/** Senders whose keys are kept. */
const SENDERS = 1_000
/** How often documents of senders are read that are not known yet. */
const NEW_SENDERS = { perSecond: 5, burst: 20 }

type Keys = readonly VerifyKey[]

interface SenderKeysOptions {
  readonly host: Pick<Host, 'outbound' | 'http' | 'monotonic' | 'closing' | 'log'>
  readonly own: OwnDid
  /** Keys that the operator has written down, by DID. */
  readonly pinned: Readonly<Record<string, { readonly keys: readonly object[] }>>
  readonly insecureDev: boolean
}

/** The keys of those who send messages: pinned ones, and those of their `did:web` documents. */
export class SenderKeys {
  readonly #options: SenderKeysOptions
  readonly #pinned: ReadonlyMap<string, Promise<Keys>>
  /** The least recently used first. */
  readonly #documents = new Map<string, KeptDocument<Keys>>()
  readonly #new: Bucket

  constructor(options: SenderKeysOptions) {
    this.#options = options
    this.#pinned = new Map(Object.entries(options.pinned).map(([did, set]) => [didOf(did), importedSet(did, set)]))
    this.#new = new Bucket({ ...NEW_SENDERS, monotonic: options.host.monotonic })
  }

  /** Throws `4.01` if nobody knows the sender's keys. `kid`: the key that is looked for. */
  async find(from: string, kid: string | undefined): Promise<Keys> {
    const did = didOf(from)
    const pinned = this.#pinned.get(did)
    if (pinned) return pinned
    if (did === didOf(this.#options.own.of())) return signingKeys(await this.#options.own.document(), did)
    const document = this.#document(did)
    const keys = await document.get()
    const isMissing = keys && kid !== undefined && !keys.some(({ id }) => id === didUrl(kid))
    const found = isMissing ? await document.renewed() : keys
    if (!found) throw envelopeError('4.01', 'The keys of the sender cannot be read: look at its DID document', 'did')
    return found
  }

  /** The keys of a sender, read again because none of those known fits. Undefined: they come from no document. */
  async renewed(from: string): Promise<Keys | undefined> {
    return this.#documents.get(didOf(from))?.renewed()
  }

  #document(did: string): KeptDocument<Keys> {
    const known = this.#documents.get(did) ?? this.#made(did)
    this.#documents.delete(did)
    this.#documents.set(did, known)
    for (const oldest of this.#documents.keys()) {
      if (this.#documents.size <= SENDERS) break
      this.#documents.delete(oldest)
    }
    return known
  }

  #made(did: string): KeptDocument<Keys> {
    const { host, insecureDev } = this.#options
    const { http, url } = this.#callTo(documentUrl(did), insecureDev)
    if (!this.#new.take(1)) {
      throw new UampError('rate_limited', 'Too many messages come from senders that are new here', { details: { retry_after: 1 } })
    }
    return new KeptDocument({
      monotonic: host.monotonic,
      onFailure: (error) => host.closing.aborted || host.log('warn', 'The DID document of a sender could not be read', { did, error }),
      fetch: async () => {
        const { document, maxAgeMs } = await readDocument(http, url, host.closing)
        return { value: await signingKeys(document, did), maxAgeMs }
      },
    })
  }

  #callTo(url: string, insecureDev: boolean): { readonly http: HttpClient; readonly url: string } {
    const { http, outbound } = this.#options.host
    const isLocal = /^https:\/\/localhost(?::\d+)?\//.test(url)
    if (insecureDev && isLocal) return { http, url: url.replace('https:', 'http:') }
    if (!outbound) throw envelopeError('4.01', 'This server cannot read the keys of others: give it those of the sender', 'did')
    const reason = outbound.refuses(url)
    if (reason !== undefined) throw envelopeError('4.01', `The DID document of the sender is not read: ${reason}`, 'did')
    return { http: outbound, url }
  }
}

async function importedSet(did: string, set: { readonly keys: readonly object[] }): Promise<Keys> {
  const keys = recordsIn(set.keys).map(({ kid, ...jwk }) => importedKey(didUrl(`#${typeof kid === 'string' ? kid : ''}`, did), jwk))
  return (await Promise.all(keys)).filter((key) => key !== undefined)
}

/** Follows no redirect: who answers for a DID is its host alone. */
async function readDocument(http: HttpClient, url: string, signal: AbortSignal) {
  const answer = await http.request({
    url,
    method: 'GET',
    headers: { accept: 'application/did+json, application/json' },
    signal,
    maxBytes: MOST_BYTES,
    timeouts: { firstByteMs: TOTAL_MS, idleMs: TOTAL_MS, totalMs: TOTAL_MS },
  })
  const pieces: Uint8Array[] = []
  for await (const piece of answer.body) pieces.push(piece)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  const document = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(joinedBytes(pieces)))
  const seconds = /\bmax-age="?(\d{1,9})/i.exec(answer.headers.get('cache-control') ?? '')?.[1]
  return { document, maxAgeMs: seconds === undefined ? undefined : Number(seconds) * 1000 }
}
