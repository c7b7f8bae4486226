import { onBehalfOf } from '../../../core/basics/principal.ts'
import { expiryClock } from '../../../core/basics/time.ts'
import type { Action, Principal } from '../../../core/ports/access.ts'
import type { Blobs } from '../../../core/ports/blobs.ts'
import type { Host } from '../../../core/ports/transport.ts'
import { isEqual } from '../../../core/secrets/is-equal.ts'
import { base64 } from '../../../protocol/base64.ts'
import { joinedBytes } from '../../../protocol/bytes.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Slot } from '../../../protocol/json.ts'
import type { Stored } from '../content.ts'
import { invalid, omniaError } from '../errors.ts'
import type { OmniaLimits } from '../options.ts'
import { placeOf } from '../positions.ts'
import type { UploadRequest } from '../schema.ts'
import { Allotment } from './allotment.ts'
import { absent, keyOf, namesOf, timeOf, type MediaRecord } from './record.ts'
import { digestOf, newKey, uploadUrl } from './upload-url.ts'

export interface Found extends MediaRecord {
  readonly key: string
  readonly isOpen: boolean
  readonly expired: boolean
  /** Whether its bytes exist. */
  readonly isThere: boolean
}

export interface Wanted extends UploadRequest {
  readonly session: string
  readonly agent: string
  readonly principal: Principal
  /** The address of this server, as the client knows it. */
  readonly url: string
}

/** Whose message refers to an upload, and what counts the bytes that are read for it. */
export interface Referring {
  readonly session: string
  readonly principal: Principal
  /** Throws `overloaded`. */
  readonly hold: { add(bytes: number): void }
}

/** Bytes in memory for each byte of an upload: its pieces, all of them joined, and base64 of that. */
const READ = 3.4

/** Hears that an upload is complete, or why it failed. */
type Watcher = (upload: Slot, failure?: UampError) => void

const SWEEP_MS = 10 * 60_000
const STORAGE_REF = /^omnia:\/\/sessions\/([^/]+)\/media\/(med-.+)$/
const ID = /^(?:upl|med)-([\w-]{1,64})$/

/** Uploads: requested, sent, and then referred to. Each belongs to one session, and only its owner finds it. */
export class Media {
  readonly blobs: Blobs
  readonly #host: Host
  readonly #limits: OmniaLimits
  readonly #expiryTime: () => number
  readonly #uploads: Allotment
  readonly #watchers = new Map<string, Set<Watcher>>()

  constructor(host: Host, limits: OmniaLimits, blobs: Blobs) {
    this.#host = host
    this.#limits = limits
    this.#expiryTime = expiryClock(host)
    this.#uploads = new Allotment('uploads', host, limits)
    this.blobs = blobs
    const timer = setInterval(() => void this.#sweep(), SWEEP_MS)
    // Node only: this timer alone does not keep the process running.
    ;(timer as { unref?: () => void }).unref?.()
    host.closing.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  async request({ session, agent, principal, url, ...request }: Wanted): Promise<Slot> {
    const { uploadBytes, uploadMs, mediaMs } = this.#limits
    if (request.size_bytes > uploadBytes) throw omniaError('UPLOAD_FAILED', 'too_large', `An upload may have ${uploadBytes} bytes`)
    const { now, newId } = this.#host
    const at = now()
    const id = newId()
    const { key, keyDigest } = await newKey()
    const times = { createdAt: at, openUntil: at + uploadMs, until: at + mediaMs }
    const upload = { ...request, id, session, agent, owner: principal.id, keyDigest, ...times }
    await this.#uploads.add(upload, principal)
    const names = namesOf(upload)
    return { ...names, upload_url: uploadUrl(url, principal, { id: names.upload_id, key }), expires_at: timeOf(upload.openUntil) }
  }

  /** Whose upload a URL is for. A wrong secret is refused like an upload that never existed. */
  async ownerOf(id: string, query: URLSearchParams): Promise<Principal> {
    const tenant = query.get('tenant') ?? ''
    const upload = (await this.#host.store.get(keyOf({ tenant }, ID.exec(id)?.[1] ?? '')))?.value as MediaRecord | undefined
    const given = await digestOf(query.get('key') ?? '')
    if (upload === undefined || !isEqual(upload.keyDigest ?? '', given)) throw absent()
    return onBehalfOf(tenant, upload.owner)
  }

  /** By the id of the upload or of the media, which differ only in their prefix. */
  async find(id: string, principal: Principal): Promise<Found | undefined> {
    const key = keyOf(principal, ID.exec(id)?.[1] ?? '')
    const upload = (await this.#host.store.get(key))?.value as MediaRecord | undefined
    if (upload?.owner !== principal.id) return undefined
    const now = this.#expiryTime()
    const isThere = (await this.blobs.size(key)) !== undefined
    return { ...upload, key, isOpen: upload.openUntil > now, expired: upload.until <= now, isThere }
  }

  /** The same for somebody who must be allowed to do this with the agent that it was sent to, or came from. */
  async findFor(action: Action, id: string, principal: Principal): Promise<Found | undefined> {
    const upload = await this.find(id, principal)
    if (upload?.agent !== undefined) this.#host.gateway.authorize(principal, action, upload.agent)
    return upload
  }

  /** Stores the bytes: exactly as many as were announced. */
  async receive(upload: Found, principal: Principal, body: AsyncIterable<Uint8Array>): Promise<void> {
    const { key, size_bytes, session } = upload
    const tellAll = (failure?: UampError): void => {
      for (const tell of this.#watchers.get(placeOf({ owner: principal, id: session })) ?? [])
        tell({ ...namesOf(upload), size_bytes }, failure)
    }
    try {
      await this.blobs.put(key, exactly(size_bytes, body), { most: size_bytes })
    } catch (thrown) {
      tellAll(thrown instanceof UampError ? thrown : new UampError('internal', 'The upload broke off', { cause: thrown }))
      throw thrown
    }
    tellAll()
  }

  /** Calls `tell` when an upload of the session is complete. Returns a function that stops this. */
  watch(place: string, tell: Watcher): () => void {
    const watchers = this.#watchers.get(place) ?? new Set()
    this.#watchers.set(place, watchers.add(tell))
    return () => {
      watchers.delete(tell)
      if (watchers.size === 0 && this.#watchers.get(place) === watchers) this.#watchers.delete(place)
    }
  }

  /** The upload that a message refers to. Uploads of other owners and other sessions are not found. */
  async resolve(ref: string, { session, principal, hold }: Referring): Promise<Stored> {
    const [, named, id] = STORAGE_REF.exec(ref) ?? []
    if (id === undefined) throw invalid('"storage_ref" is not a reference to an upload')
    const upload = named === session ? await this.find(id, principal) : undefined
    if (upload?.session !== session || upload.expired || !upload.isThere) {
      throw new UampError('not_found', 'There is no such upload in this session')
    }
    hold.add(READ * upload.size_bytes)
    const pieces: Uint8Array[] = []
    for await (const piece of this.blobs.read(upload.key)) pieces.push(piece)
    return { base64: base64(joinedBytes(pieces)), filename: upload.filename, size_bytes: upload.size_bytes }
  }

  /** Deletes uploads that have expired. */
  async #sweep(): Promise<void> {
    const { log } = this.#host
    try {
      await this.blobs.sweep(this.#expiryTime() - this.#limits.mediaMs - this.#limits.uploadMs)
    } catch (error) {
      log('error', 'Old uploads could not be deleted', { error })
    }
  }
}

export function enabled(media: Media | undefined): Media {
  if (media) return media
  throw omniaError('MEDIA_NOT_ENABLED', 'not_supported', 'media storage is not enabled')
}

async function* exactly(size: number, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let came = 0
  for await (const piece of body) {
    came += piece.length
    if (came > size) throw omniaError('UPLOAD_FAILED', 'too_large', `${size} bytes were announced, and more came`)
    yield piece
  }
  if (came < size) throw omniaError('UPLOAD_FAILED', 'invalid_request', `${size} bytes were announced, and ${came} came`)
}
