import type { Slot } from '../../protocol/json.ts'
import { InputBuffer } from '../../wire/audio/input-buffer.ts'
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

/** Throws unless agents understand the sound of a frame. */
export function checkSound(given: Slot): void {
  const meta = check(SoundMeta, given)
  if (PCM.test(meta.codec ?? SOUND.codec) && isHeard(meta)) return
  throw omniaError('UNSATISFIABLE_FORMAT', 'not_supported', `Send ${SOUND.codec} of 16 bits, ${SOUND.sample_rate} Hz, one channel`)
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
  #whole = wholeSamples()
  #hasHeard = false

  constructor(hearing: Hearing) {
    this.#hearing = hearing
  }

  hear(piece: Uint8Array): void {
    for (const change of this.#buffer.append(toSamples(this.#whole(piece)), LISTENING)) {
      if (change.type === 'started') this.#hearing.onStart()
      else this.#end(change.samples)
    }
  }

  /** The call is over. If no speech was noticed, all of its sound counts as speech: it was sent to be heard. */
  finish(): void {
    const counts = this.#buffer.speaking || !this.#hasHeard
    const rest = this.#buffer.take()
    if (counts && rest.length > 0) this.#end(rest)
    this.#whole = wholeSamples()
    this.#hasHeard = false
  }

  #end(samples: Int16Array): void {
    this.#hasHeard = true
    this.#hearing.onEnd(samples)
  }
}
