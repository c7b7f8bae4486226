import type { Principal } from '../../../core/ports/access.ts'
import type { Blobs } from '../../../core/ports/blobs.ts'
import type { Session } from '../../../core/ports/session.ts'
import type { Host } from '../../../core/ports/transport.ts'
import { fromBase64 } from '../../../protocol/base64.ts'
import type { MediaItem } from '../../../protocol/content.ts'
import { UampError } from '../../../protocol/errors.ts'
import { mediaSource } from '../../../wire/media-source.ts'
import type { OmniaLimits } from '../options.ts'
import { isMimeType } from '../schema.ts'
import { Allotment } from './allotment.ts'
import { keyOf } from './record.ts'

/** Whose answer it is, and under which id it is told. */
export interface Answer {
  readonly id: string
  readonly session: Pick<Session, 'id' | 'agent'>
  readonly principal: Principal
}

/** The place of a kept medium: the path of its download. */
type Path = string | undefined

/** Keeps what an agent streamed, so that its client can play it again. It is found, and goes, like an upload. */
export class Replays {
  readonly #host: Host
  readonly #limits: OmniaLimits
  readonly #blobs: Blobs
  readonly #replays: Allotment
  /** Media that is being written. Every connection of a session asks for the same. */
  readonly #writing = new Map<string, Promise<Path>>()

  constructor(host: Host, limits: OmniaLimits, blobs: Blobs) {
    this.#host = host
    this.#limits = limits
    this.#blobs = blobs
    this.#replays = new Allotment('replays', host, limits)
  }

  /** Where each medium is found; media that is not kept is not in it. Never rejects: an answer is told, with its media or without. */
  async keep(items: readonly MediaItem[], answer: Answer): Promise<ReadonlyMap<MediaItem, string>> {
    const kept = new Map<MediaItem, string>()
    for (const [index, item] of items.entries()) {
      const path = await this.#shared(item, `${answer.id}-${index}`, answer)
      if (path !== undefined) kept.set(item, path)
    }
    return kept
  }

  #shared(item: MediaItem, id: string, answer: Answer): Promise<Path> {
    const key = keyOf(answer.principal, id)
    const writing =
      this.#writing.get(key) ??
      this.#keep(item, id, answer)
        .catch((error: unknown) => {
          const isFull = error instanceof UampError && error.code === 'rate_limited'
          if (!isFull) this.#host.log('warn', 'Streamed media could not be kept', { session: answer.session.id, error })
          return undefined
        })
        .finally(() => this.#writing.delete(key))
    this.#writing.set(key, writing)
    return writing
  }

  async #keep(item: MediaItem, id: string, { session, principal }: Answer): Promise<Path> {
    const { gateway, now } = this.#host
    const { uploadBytes, mediaMs } = this.#limits
    const path = `/media/download/${encodeURIComponent(session.id)}/med-${id}`
    const key = keyOf(principal, id)
    // Kept already, for another connection or before this one broke.
    if ((await this.#blobs.size(key)) !== undefined) return path
    const source = mediaSource(item)
    if (!source || !('data' in source) || source.data.length > Math.ceil(uploadBytes / 3) * 4 || !isMimeType(source.mime)) return undefined
    const at = now()
    const hold = gateway.hold(principal, source.data.length)
    try {
      const bytes = fromBase64(source.data)
      const filename = item.filename ?? `${item.type}.${/\/([\w-]+)/.exec(source.mime)?.[1] ?? 'bin'}`
      const about = { filename, mime_type: source.mime, size_bytes: bytes.length }
      const times = { createdAt: at, openUntil: at, until: at + mediaMs }
      await this.#replays.add({ ...about, id, session: session.id, agent: session.agent, owner: principal.id, ...times }, principal)
      await this.#blobs.put(key, piecesOf(bytes), { most: uploadBytes })
      return path
    } finally {
      hold.close()
    }
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes
}
