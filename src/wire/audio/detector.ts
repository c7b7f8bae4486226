import { SAMPLES_PER_MS } from './samples.ts'

/** The length of sound that is judged at once. */
const FRAME_MS = 20
export const FRAME = FRAME_MS * SAMPLES_PER_MS
/** Loud frames in a row that count as speech; a click is shorter. */
const ONSET = 3
/** The loudness of a loud frame (root mean square, 1 at full scale) at threshold 1. At 0.5 it is a quarter of this, -34 dB. */
const LOUD = 0.08

export interface Detection {
  /** 0 to 1. A higher one needs louder speech. */
  readonly threshold: number
  readonly silenceMs: number
}

/** Tells speech from silence by loudness alone. */
export class Detector {
  #loud = 0
  #quietMs = 0
  speaking = false

  /** Takes a frame, and tells whether speech begins or ends with it. */
  take(frame: Int16Array, { threshold, silenceMs }: Detection): 'started' | 'stopped' | undefined {
    const loud = loudness(frame) >= LOUD * threshold ** 2
    this.#loud = loud ? this.#loud + 1 : 0
    this.#quietMs = loud ? 0 : this.#quietMs + FRAME_MS
    if (!this.speaking && this.#loud >= ONSET) {
      this.speaking = true
      return 'started'
    }
    if (this.speaking && this.#quietMs >= silenceMs) {
      this.reset()
      return 'stopped'
    }
    return undefined
  }

  /** How long before its `started` speech began. */
  static readonly onsetMs = ONSET * FRAME_MS

  reset(): void {
    this.speaking = false
    this.#loud = this.#quietMs = 0
  }
}

function loudness(frame: Int16Array): number {
  let sum = 0
  for (const sample of frame) sum += sample * sample
  return Math.sqrt(sum / frame.length) / 32_768
}
