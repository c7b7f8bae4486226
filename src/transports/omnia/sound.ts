import type { Slot } from '../../protocol/json.ts'
import { omniaError } from './errors.ts'
import { check, SoundMeta } from './schema.ts'

/** What agents hear and say: 16 bits, little-endian, one channel. Clients are asked to send it so, and those of Omnia then do. */
export const SOUND = { codec: 'pcm', sample_rate: 24_000, channels: 1 } as const

const BYTES_PER_MS = (SOUND.sample_rate / 1000) * 2
const PCM = /^pcm(?:16|_s16le)?$/i

/** From which mean square a piece is loud, 1 at full scale: -34 dB. */
const LOUD = 0.0004
/** Sound that is speech: a click is none. Then the silence that ends it. */
const ONSET_MS = 60
const PAUSE_MS = 700
/** What is kept: of silence the newest, of speech almost three minutes. Then it counts as said. */
const SILENCE_BYTES = 10_000 * BYTES_PER_MS
const SPEECH_BYTES = 8 * 1024 * 1024

/** Throws unless the frame has sound that agents understand; what it leaves out is as it should be. */
export function checkSound(meta: Slot): void {
  const { codec, sample_rate: rate, channels } = check(SoundMeta, meta)
  if (PCM.test(codec ?? SOUND.codec) && (rate ?? SOUND.sample_rate) === SOUND.sample_rate && (channels ?? 1) === 1) return
  throw omniaError('UNSATISFIABLE_FORMAT', 'not_supported', `Send ${SOUND.codec} of 16 bits, ${SOUND.sample_rate} Hz, one channel`)
}

export interface Hearing {
  /** Somebody begins to speak. */
  readonly onStart: () => void
  /** Somebody has spoken. */
  readonly onEnd: (sound: Uint8Array) => void
}

/**
 * Tells what was said from silence, by loudness alone: a client in a call sends sound without an end, and nobody else here would
 * know when it is the agent's turn.
 */
export class Listener {
  readonly #hearing: Hearing
  #pieces: Uint8Array[] = []
  #bytes = 0
  #loudMs = 0
  #quietMs = 0
  #speaking = false
  #hasHeard = false

  constructor(hearing: Hearing) {
    this.#hearing = hearing
  }

  hear(piece: Uint8Array): void {
    this.#pieces.push(piece.slice())
    this.#bytes += piece.length
    while (!this.#speaking && this.#bytes > SILENCE_BYTES) this.#bytes -= this.#pieces.shift()?.length ?? 0
    const ms = piece.length / BYTES_PER_MS
    const loud = isLoud(piece)
    this.#loudMs = loud ? this.#loudMs + ms : 0
    this.#quietMs = loud ? 0 : this.#quietMs + ms
    if (!this.#speaking && this.#loudMs >= ONSET_MS) {
      this.#speaking = true
      this.#hearing.onStart()
    }
    if (this.#speaking && (this.#quietMs >= PAUSE_MS || this.#bytes > SPEECH_BYTES)) this.#end()
  }

  /** The call is over. What nobody took for speech counts too, if nothing else was said: it was sent to be heard. */
  finish(): void {
    if (this.#bytes > 0 && (this.#speaking || !this.#hasHeard)) this.#end()
    this.#forget()
    this.#hasHeard = false
  }

  #end(): void {
    const sound = new Uint8Array(this.#bytes)
    let at = 0
    for (const piece of this.#pieces) {
      sound.set(piece, at)
      at += piece.length
    }
    this.#forget()
    this.#hasHeard = true
    this.#hearing.onEnd(sound)
  }

  #forget(): void {
    this.#pieces = []
    this.#bytes = this.#loudMs = this.#quietMs = 0
    this.#speaking = false
  }
}

function isLoud(piece: Uint8Array): boolean {
  const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength)
  let sum = 0
  for (let at = 0; at + 1 < piece.length; at += 2) sum += (view.getInt16(at, true) / 32_768) ** 2
  return sum * 2 >= LOUD * piece.length && piece.length > 1
}
