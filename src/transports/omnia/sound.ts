import type { Slot } from '../../protocol/json.ts'
import { InputBuffer } from '../../wire/audio/input-buffer.ts'
import { RATES, Resampler, toMono } from '../../wire/audio/resample.ts'
import { SAMPLE_RATE, toSamples, wholeSamples } from '../../wire/audio/samples.ts'
import { omniaError } from './errors.ts'
import { check, SoundMeta } from './schema.ts'

/** The sound of agents: 16 bits, little-endian, one channel. Omnia's clients send it when they are asked to. */
export const SOUND = { codec: 'pcm', sample_rate: SAMPLE_RATE, channels: 1 } as const

const PCM = /^pcm(?:16|_s16le)?$/i

/** Omnia has no settings for this. The silence before speech belongs to it, as far as it is kept. */
const LISTENING = { threshold: 0.5, silenceMs: 700, prefixMs: 10_000 }

/** Whether samples can be handed to agents. Fields that are left out have our values. */
export function isHeard({ sample_rate: rate, channels }: Pick<SoundMeta, 'sample_rate' | 'channels'>): boolean {
  return (rate ?? SOUND.sample_rate) === SOUND.sample_rate && (channels ?? SOUND.channels) === SOUND.channels
}

/** How the samples of a client are to be read. */
export interface SoundFormat {
  readonly sample_rate: number
  readonly channels: number
}

/** The most channels of a client's sound. They become one. */
const CHANNELS = 8

/** The format of a frame's sound. What it leaves out is as in the frames `before`. Throws if it cannot be brought to ours. */
export function soundFormat(given: Slot, before: SoundFormat = SOUND): SoundFormat {
  const { codec, ...meta } = check(SoundMeta, given)
  const sample_rate = meta.sample_rate ?? before.sample_rate
  const channels = meta.channels ?? before.channels
  const isRate = Number.isInteger(sample_rate) && sample_rate >= RATES.least && sample_rate <= RATES.most
  const isCount = Number.isInteger(channels) && channels >= 1 && channels <= CHANNELS
  if (PCM.test(codec ?? SOUND.codec) && isRate && isCount) return { sample_rate, channels }
  throw omniaError(
    'UNSATISFIABLE_FORMAT',
    'not_supported',
    `Send ${SOUND.codec} of 16 bits, best at ${SOUND.sample_rate} Hz in one channel`,
  )
}

/** Turns the bytes of a client into our samples. */
class Ear {
  readonly format: SoundFormat
  readonly #whole: (piece: Uint8Array) => Uint8Array
  readonly #resampler: Resampler | undefined

  constructor(format: SoundFormat) {
    this.format = format
    this.#whole = wholeSamples(format.channels)
    this.#resampler = format.sample_rate === SAMPLE_RATE ? undefined : new Resampler(format.sample_rate)
  }

  take(piece: Uint8Array): Int16Array {
    const samples = toMono(toSamples(this.#whole(piece)), this.format.channels)
    return this.#resampler?.take(samples) ?? samples
  }

  end(): Int16Array {
    return this.#resampler?.end() ?? new Int16Array()
  }
}

export interface Hearing {
  /** Somebody begins to speak. */
  readonly onStart: () => void
  /** Somebody has spoken. */
  readonly onEnd: (samples: Int16Array) => void
}

/** A call: the client sends sound without an end, so the server has to notice when it is the agent's turn. */
export class Listener {
  readonly #hearing: Hearing
  readonly #buffer = new InputBuffer()
  #ear = new Ear(SOUND)
  #hasHeard = false

  constructor(hearing: Hearing) {
    this.#hearing = hearing
  }

  /** The format of the frames so far. */
  get format(): SoundFormat {
    return this.#ear.format
  }

  /** True if a frame of this format comes in another one than the frames before. */
  isChange({ sample_rate, channels }: SoundFormat): boolean {
    const { format } = this.#ear
    return sample_rate !== format.sample_rate || channels !== format.channels
  }

  hear(piece: Uint8Array, format: SoundFormat = this.#ear.format): void {
    if (this.isChange(format)) {
      this.#add(this.#ear.end())
      this.#ear = new Ear(format)
    }
    this.#add(this.#ear.take(piece))
  }

  #add(samples: Int16Array): void {
    for (const change of this.#buffer.append(samples, LISTENING)) {
      if (change.type === 'started') this.#hearing.onStart()
      else this.#end(change.samples)
    }
  }

  /** The call is over. If no speech was noticed, all of its sound counts as speech: it was sent to be heard. */
  finish(): void {
    this.#add(this.#ear.end())
    const counts = this.#buffer.speaking || !this.#hasHeard
    const rest = this.#buffer.take()
    if (counts && rest.length > 0) this.#end(rest)
    this.#ear = new Ear(SOUND)
    this.#hasHeard = false
  }

  #end(samples: Int16Array): void {
    this.#hasHeard = true
    this.#hearing.onEnd(samples)
  }
}
