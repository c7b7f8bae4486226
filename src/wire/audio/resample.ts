import { SAMPLE_RATE } from './samples.ts'

/** Sample rates that can be brought to ours, in Hz. */
export const RATES = { least: 4_000, most: 192_000 } as const

/** How far the filter reaches to each side, in periods of its cut-off: more is sharper, and costs more for each sample. */
const REACH = 16
/** Its cut-off as a part of the lower of both Nyquist frequencies: the rest is for the slope, so that nothing folds back. */
const PASS = 0.92
/** The most positions between two samples that have a filter of their own; others use the nearest. */
const PHASES = 512
/** How many rates keep their filters. The usual ones are fewer. */
const TABLES = 16

/**
 * Brings sound to our sample rate, piece by piece, with a windowed-sinc low-pass filter. Pieces are parts of one signal: the end of
 * each is kept for the next, so their borders cannot be heard.
 */
export class Resampler {
  readonly #from: number
  readonly #reach: number
  readonly #filters: Filters
  /** The samples that later ones still need. It begins with silence. */
  #kept: Float32Array
  /** How many samples were given before those that are kept, less the silence at the beginning. */
  #before: number
  #made = 0
  #given = 0

  constructor(from: number) {
    this.#from = from
    this.#filters = filtersOf(from)
    this.#reach = this.#filters.reach
    this.#kept = new Float32Array(this.#reach)
    this.#before = -this.#reach
  }

  take(samples: Int16Array): Int16Array {
    this.#given += samples.length
    return this.#make(Float32Array.from(samples))
  }

  /** The rest, which waited for samples that do not come. */
  end(): Int16Array {
    const due = Math.round((this.#given * SAMPLE_RATE) / this.#from)
    const rest = this.#make(new Float32Array(this.#reach + 1))
    return rest.subarray(0, Math.max(0, due - this.#made + rest.length))
  }

  #make(more: Float32Array): Int16Array {
    const input = new Float32Array(this.#kept.length + more.length)
    input.set(this.#kept)
    input.set(more, this.#kept.length)
    const last = this.#before + input.length
    // One that lies at `at` needs the samples up to `at + reach`.
    const until = Math.ceil(((last - this.#reach) * SAMPLE_RATE) / this.#from)
    const output = new Int16Array(Math.max(0, until - this.#made))
    for (let index = 0; index < output.length; index++) output[index] = this.#at(((this.#made + index) * this.#from) / SAMPLE_RATE, input)
    this.#made += output.length
    const needed = Math.max(0, Math.min(input.length, Math.floor((this.#made * this.#from) / SAMPLE_RATE) - this.#reach + 1 - this.#before))
    this.#kept = input.slice(needed)
    this.#before += needed
    return output
  }

  #at(at: number, input: Float32Array): number {
    const whole = Math.floor(at)
    const filter = this.#filters.at(at - whole)
    const start = whole - this.#reach + 1 - this.#before
    let sum = 0
    for (let tap = 0; tap < filter.length; tap++) sum += (filter[tap] as number) * (input[start + tap] ?? 0)
    return Math.max(-32_768, Math.min(32_767, Math.round(sum)))
  }
}

/**
 * The filters of one rate. Each is made when a sample first needs it, so that what somebody makes us build is bounded by the samples
 * that they send: a new rate alone costs nothing.
 */
class Filters {
  readonly reach: number
  readonly #cutoff: number
  readonly #phases: (Float32Array | undefined)[]

  constructor(rate: number) {
    const ratio = Math.min(1, SAMPLE_RATE / rate)
    this.reach = Math.ceil(REACH / ratio)
    this.#cutoff = ratio * PASS
    const count = Math.min(PHASES, SAMPLE_RATE / divisor(rate, SAMPLE_RATE))
    this.#phases = Array.from({ length: count + 1 }, () => undefined)
  }

  /** The filter for a place between two samples, from 0 to 1. */
  at(place: number): Float32Array {
    const last = this.#phases.length - 1
    const phase = Math.round(place * last)
    return (this.#phases[phase] ??= taps(phase / last, this.reach, this.#cutoff))
  }
}

/** The filters of the rates that were used last, for all connections: a client that goes back and forth makes none twice. */
const tables = new Map<number, Filters>()

function filtersOf(rate: number): Filters {
  const filters = tables.get(rate) ?? new Filters(rate)
  tables.delete(rate)
  tables.set(rate, filters)
  const [oldest] = tables.keys()
  if (tables.size > TABLES && oldest !== undefined) tables.delete(oldest)
  return filters
}

/** How many filters were made so far: the work that clients can cause. */
export const built = { filters: 0 }

/** A sinc under a Blackman window, for a place `phase` after a sample. Its sum is 1, so that loudness stays. */
function taps(phase: number, reach: number, cutoff: number): Float32Array {
  built.filters++
  const filter = new Float32Array(2 * reach)
  let sum = 0
  for (let tap = 0; tap < filter.length; tap++) {
    const distance = tap - reach + 1 - phase
    const turn = (Math.PI * distance) / reach
    const window = Math.abs(distance) >= reach ? 0 : 0.42 + 0.5 * Math.cos(turn) + 0.08 * Math.cos(2 * turn)
    const x = Math.PI * cutoff * distance
    sum += filter[tap] = window * (x === 0 ? 1 : Math.sin(x) / x)
  }
  return filter.map((value) => value / sum)
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b)
}

/** Several channels become one, their mean. `samples` has whole frames, a sample of each channel after the other. */
export function toMono(samples: Int16Array, channels: number): Int16Array {
  if (channels === 1) return samples
  return Int16Array.from({ length: Math.floor(samples.length / channels) }, (_, index) => {
    let sum = 0
    for (let channel = 0; channel < channels; channel++) sum += samples[index * channels + channel] as number
    return Math.round(sum / channels)
  })
}
