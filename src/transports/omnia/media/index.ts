import { defer } from '../../../core/defer.ts'
import type { Blobs } from '../../../core/ports/blobs.ts'
import type { Principal } from '../../../core/ports/access.ts'
import type { Host } from '../../../core/ports/transport.ts'
import { base64 } from '../../../protocol/base64.ts'
import { UampError } from '../../../protocol/errors.ts'
import { omniaError } from '../errors.ts'
import type { OmniaLimits } from '../options.ts'
import { invalid, type UploadRequest } from '../schema.ts'

/** An upload as it was asked for. It does not change: whether it has come is whether its bytes are there. */
interface Upload {
  readonly id: string
  readonly session: string
  readonly owner: string
  readonly filename: string
  readonly mime: string
  readonly size: number
  readonly createdAt: number
  /** Until when its bytes may come, and until when they are kept. */
  readonly openUntil: number
  readonly until: number
}

export interface Found extends Upload {
  readonly expired: boolean
  readonly key: string
}

export interface Wanted extends UploadRequest {
  readonly session: string
  readonly principal: Principal
  /** Where this server is for the client. */
  readonly url: string
}

export interface UploadComplete {
  readonly upload_id: string
  readonly storage_ref: string
  readonly size_bytes: number
}

const STORAGE_REF = /^omnia:\/\/sessions\/([^/]+)\/media\/(med-.+)$/
const ID = /^(?:upl|med)-([\w-]{1,64})$/
/** RFC 6838 §4.2, and parameters without quotes. */
const MIME = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?:; ?[\w.-]+=[\w.-]+)*$/
const FILENAME_LENGTH = 255
const SLICE = 48 * 1024

/** Uploads: asked for, sent, referred to. Each belongs to one session, and is there for nobody but its owner. */
export class Media {
  readonly blobs: Blobs
  readonly #host: Host
  readonly #limits: OmniaLimits
  readonly #watchers = new Map<string, Set<(done: UploadComplete) => void>>()

  constructor(host: Host, limits: OmniaLimits, blobs: Blobs) {
    this.#host = host
    this.#limits = limits
    this.blobs = blobs
  }

  async request({ filename, mime_type: mime, size_bytes: size, session, principal, url }: Wanted) {
    checkFilename(filename)
    if (!MIME.test(mime)) throw invalid('"mime_type" is not a media type')
    if (!Number.isSafeInteger(size) || size <= 0) throw invalid('"size_bytes" must be positive')
    const { uploadBytes, uploadMs, mediaMs, uploadsPerPrincipal } = this.#limits
    if (size > uploadBytes) throw omniaError('UPLOAD_FAILED', 'too_large', `An upload may have ${uploadBytes} bytes`)
    const { store, now, newId } = this.#host
    const at = now()
    const index = `${principal.tenant} omnia uploads ${principal.id}`
    if ((await store.count(index, { from: sortKey(at - mediaMs) })) >= uploadsPerPrincipal) {
      throw new UampError('rate_limited', `You may have ${uploadsPerPrincipal} uploads`, { details: { limit: uploadsPerPrincipal } })
    }
    const id = newId()
    const upload = { id, session, owner: principal.id, filename, mime, size, createdAt: at, openUntil: at + uploadMs, until: at + mediaMs }
    // Kept for longer than what it stands for, so that who comes too late is told that.
    await store.set(keyOf(principal, id), upload, { ttlMs: 2 * mediaMs, index: { [index]: sortKey(at) } })
    return {
      upload_id: `upl-${id}`,
      upload_url: `${url}/media/upload/upl-${id}`,
      storage_ref: refOf(upload),
      expires_at: new Date(upload.openUntil).toISOString(),
    }
  }

  /** By the id of the upload or of the media: both are made of the same. */
  async find(id: string, principal: Principal): Promise<Found | undefined> {
    const bare = ID.exec(id)?.[1]
    if (bare === undefined) return undefined
    const key = keyOf(principal, bare)
    const upload = (await this.#host.store.get(key))?.value as Upload | undefined
    return upload?.owner === principal.id ? { ...upload, key, expired: upload.until <= this.#host.now() } : undefined
  }

  /** Whether its bytes may still come. */
  isOpen({ openUntil }: Upload): boolean {
    return openUntil > this.#host.now()
  }

  /** Its bytes come: all that were announced, and none more. */
  async receive(upload: Found, principal: Principal, body: AsyncIterable<Uint8Array>): Promise<void> {
    const { key, id, size, session } = upload
    await this.blobs.put(key, exactly(size, body), { most: size })
    const watchers = this.#watchers.get(`${principal.tenant} ${session}`) ?? []
    for (const tell of watchers) tell({ upload_id: `upl-${id}`, storage_ref: refOf(upload), size_bytes: size })
  }

  /** Told when an upload of a session is complete. Returns what ends it. */
  watch(place: string, tell: (done: UploadComplete) => void): () => void {
    const watchers = this.#watchers.get(place) ?? new Set()
    this.#watchers.set(place, watchers.add(tell))
    return () => {
      watchers.delete(tell)
      if (watchers.size === 0 && this.#watchers.get(place) === watchers) this.#watchers.delete(place)
    }
  }

  /** What a message refers to. Of others' uploads, and those of other sessions, it is not even told that they are there. */
  async resolve(ref: string, session: string, principal: Principal): Promise<{ base64: string; filename: string }> {
    const [, named, id] = STORAGE_REF.exec(ref) ?? []
    if (id === undefined) throw invalid('"storage_ref" is not a reference to an upload')
    const upload = named === session ? await this.find(id, principal) : undefined
    const size = upload?.session === session && !upload.expired ? await this.blobs.size(upload.key) : undefined
    if (!upload || size === undefined) throw new UampError('not_found', 'There is no such upload in this session')
    const bytes = new Uint8Array(size)
    let at = 0
    for await (const piece of this.blobs.read(upload.key)) {
      bytes.set(piece, at)
      at += piece.length
    }
    return { base64: await encoded(bytes), filename: upload.filename }
  }

  /** What nobody can refer to any more goes. */
  sweep(): Promise<void> {
    return this.blobs.sweep(this.#host.now() - this.#limits.mediaMs - this.#limits.uploadMs)
  }

  info({ filename, mime, createdAt, until, ...upload }: Upload, size: number) {
    return {
      storage_ref: refOf(upload),
      filename,
      mime_type: mime,
      size_bytes: size,
      created_at: new Date(createdAt).toISOString(),
      expires_at: new Date(until).toISOString(),
    }
  }
}

/** It is only ever shown, never a path here; but clients may make one of it. */
function checkFilename(name: string): void {
  // oxlint-disable-next-line no-control-regex
  const bad = name === '' || name === '.' || name === '..' || /[/\\\u0000-\u001f\u007f]/.test(name)
  if (bad) throw invalid('"filename" must be the name of a file, without a path')
  if (name.length > FILENAME_LENGTH) throw invalid(`"filename" must be at most ${FILENAME_LENGTH} characters long`)
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

/** In slices, between which others have their turn. Without padding, as each is whole groups of three bytes, they can be put together. */
async function encoded(bytes: Uint8Array): Promise<string> {
  const texts: string[] = []
  for (let at = 0; at < bytes.length; at += SLICE) {
    texts.push(base64(bytes.subarray(at, at + SLICE)))
    if (texts.length % 8 === 0) await new Promise<void>(defer)
  }
  return texts.join('')
}

function refOf({ session, id }: Pick<Upload, 'session' | 'id'>): string {
  return `omnia://sessions/${session}/media/med-${id}`
}

function keyOf({ tenant }: Principal, id: string): string {
  return `${tenant} omnia media ${id}`
}

function sortKey(at: number): string {
  return String(Math.max(0, at)).padStart(15, '0')
}
