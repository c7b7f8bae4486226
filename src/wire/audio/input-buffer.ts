import { invalid } from '../parse.ts'
import { Detector, FRAME, type Detection } from './detector.ts'
import { SAMPLES_PER_MS } from './samples.ts'

/** Samples that may wait for a commit: 8 MiB, almost three minutes. More are refused, or, if the server listens for pauses, end the turn. */
const MAX_SAMPLES = 4 * 1024 * 1024
/** Silence that is kept while nobody speaks, in case the client commits it. Older silence is dropped. */
const SILENCE_SAMPLES = 10_000 * SAMPLES_PER_MS
const FIRST_ROOM = 16 * 1024

export interface Listening extends Detection {
  /** How much sound before the speech belongs to it. */
  readonly prefixMs: number
}

/** A change that was noticed, in milliseconds of audio since the connection opened. */
export type Noticed =
  { readonly type: 'started'; readonly ms: number } | { readonly type: 'stopped'; readonly ms: number; readonly samples: Int16Array }

/** The input audio buffer of a connection. */
export class InputBuffer {
  #room = new Int16Array()
  #length = 0
  /** Samples of the connection before the first one in the buffer. */
  #gone = 0
  /** Samples of the buffer that the detector has heard. */
  #listened = 0
  readonly #detector = new Detector()

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** The memory that it takes. */
  get bytes(): number {
    return this.#room.byteLength
  }

  /** The client is speaking. */
  get speaking(): boolean {
    return this.#detector.speaking
  }

  /** Refuses samples that do not fit, and keeps the others. */
  append(samples: Int16Array, listening: Listening | undefined): Noticed[] {
    if (listening) return this.#listen(samples, listening)
    if (this.#length + samples.length > MAX_SAMPLES) {
      throw invalid('The input audio buffer is full: commit or clear it first', 'audio', 'input_audio_buffer_full')
    }
    this.#add(samples)
    this.#listened = this.#length
    this.#detector.reset()
    return []
  }

  /** Empties the buffer, and returns its samples. */
  take(): Int16Array {
    const samples = this.#room.slice(0, this.#length)
    this.clear()
    return samples
  }

  clear(): void {
    this.#gone += this.#length
    this.#length = this.#listened = 0
    this.#room = new Int16Array()
    this.#detector.reset()
  }

  #listen(samples: Int16Array, listening: Listening): Noticed[] {
    const noticed: Noticed[] = []
    // A second at a time, so that the bounds also hold for a message of a minute.
    for (let at = 0; at < samples.length; at += 1000 * SAMPLES_PER_MS) {
      this.#add(samples.subarray(at, at + 1000 * SAMPLES_PER_MS))
      while (this.#listened + FRAME <= this.#length) this.#hear(listening, noticed)
      if (!this.#detector.speaking && this.#length > 2 * SILENCE_SAMPLES) this.#drop(this.#length - SILENCE_SAMPLES)
      if (this.#length > MAX_SAMPLES) noticed.push(this.#stop())
    }
    return noticed
  }

  #hear(listening: Listening, noticed: Noticed[]): void {
    const frame = this.#room.subarray(this.#listened, this.#listened + FRAME)
    this.#listened += FRAME
    const change = this.#detector.take(frame, listening)
    if (change === 'started') {
      const before = (Detector.onsetMs + listening.prefixMs) * SAMPLES_PER_MS
      this.#drop(Math.max(0, this.#listened - before))
      noticed.push({ type: 'started', ms: Math.floor(this.#gone / SAMPLES_PER_MS) })
    } else if (change === 'stopped') {
      noticed.push(this.#stop())
    }
  }

  /** Ends the speech with what the detector has heard. Later samples stay. */
  #stop(): Noticed {
    const samples = this.#room.slice(0, this.#listened)
    this.#drop(this.#listened)
    this.#detector.reset()
    return { type: 'stopped', ms: Math.floor(this.#gone / SAMPLES_PER_MS), samples }
  }

  #add(samples: Int16Array): void {
    const length = this.#length + samples.length
    if (length > this.#room.length) {
      const larger = new Int16Array(Math.max(length, this.#room.length * 2, FIRST_ROOM))
      larger.set(this.#room.subarray(0, this.#length))
      this.#room = larger
    }
    this.#room.set(samples, this.#length)
    this.#length = length
  }

  #drop(count: number): void {
    this.#room.copyWithin(0, count, this.#length)
    this.#length -= count
    this.#listened -= count
    this.#gone += count
  }
}
