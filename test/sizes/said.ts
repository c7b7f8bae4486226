import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import type { Draft } from '../../src/protocol/events.ts'
import type { Cell } from './cells.ts'

const MIB = 1024 * 1024

/** Characters of text, or bytes of media or sound, by the name in the table. */
export const SIZES = {
  '0': 0,
  '1': 1,
  '1 MiB − 1': MIB - 1,
  '1 MiB': MIB,
  '1 MiB + 1': MIB + 1,
  '5 MiB': 5 * MIB,
  '60 MiB': 60 * MIB,
  '300,000 deltas': 0,
} as const

export type SizeName = keyof typeof SIZES

export const MANY_DELTAS: SizeName = '300,000 deltas'
const DELTAS = 300_000

/** How the agent says it: in pieces, in one, a picture and a few words after it, nothing before its end, or only its beginning. */
export const SHAPES = ['many deltas', 'one delta', 'media, then text', 'only at the end', 'the rest at the end'] as const
export type Shape = (typeof SHAPES)[number]

/** What arrives, or should. */
export interface Said {
  readonly text: string
  /** A picture, as base64. */
  readonly media?: string | undefined
  readonly sound?: Buffer | undefined
}

/** Characters of a delta, and bytes of a piece of sound: a tenth of a second. */
const PIECE = 1000
const SOUND_PIECE = 4800
const AFTERWORD = 'That was it.'

/** A text in which every place looks different, with what JSON and UTF-8 have to escape. Made of bytes: that is fast. */
function makeText(length: number): string {
  const bytes = Buffer.alloc(Math.ceil(length / 8) * 8, ' ')
  for (let at = 0, n = 0; at < length; at += 8, n++) {
    for (let digit = 6, rest = n; digit >= 0; digit--, rest = Math.floor(rest / 10)) bytes[at + digit] = 0x30 + (rest % 10)
    if (n % 100 === 99) bytes[at + 7] = ENDS[((n - 99) / 100) & 3] as number
  }
  return bytes.toString('latin1', 0, length)
}
const texts = new Map<number, string>()
const textOf = (length: number): string => {
  const known = texts.get(length) ?? makeText(length)
  texts.set(length, known)
  return known
}

const ENDS = Buffer.from('\n"é\\', 'latin1')

function bytesOf(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) >>> 0, at)
  return bytes
}

/** A sample of sound has two bytes. */
const even = (length: number): number => length + (length % 2)

export function expected({ size, shape, sound }: Cell): Said {
  const length = SIZES[size]
  if (sound && size === MANY_DELTAS) return { text: '', sound: bytesOf(2 * DELTAS) }
  if (sound) return { text: shape === 'media, then text' ? AFTERWORD : '', sound: bytesOf(even(length)) }
  if (size === MANY_DELTAS) return { text: Array.from({ length: DELTAS }, (_, n) => `${n} `).join('') }
  if (shape === 'media, then text') return { text: AFTERWORD, media: bytesOf(length).toString('base64') }
  return { text: textOf(length) }
}

/** What the client sends, from which the agent knows what to say. */
export function promptFor({ size, shape, sound }: Cell): string {
  return JSON.stringify({ size, shape, sound })
}

export const sayer: AgentPort = defineAgent('sayer', async function* (turn) {
  const cell = JSON.parse(turn.messages.at(-1)?.content ?? '') as Cell
  yield* draftsOf(cell)
})

function* draftsOf(cell: Cell): Generator<Draft, void> {
  const { text: words, media, sound } = expected(cell)
  const { shape, size } = cell
  if (shape === 'only at the end' || shape === 'the rest at the end') {
    if (shape === 'the rest at the end') {
      yield { type: 'thinking', content: 'Hm' }
      yield { type: 'progress', target: 'response' }
      if (!sound) yield text(words.slice(0, words.length / 2))
    }
    const output: ContentItem[] = sound ? [wholeSound(sound)] : [{ type: 'text', text: words }]
    yield { type: 'response.done', response: { id: '', status: 'completed', output } }
  } else if (shape === 'media, then text') {
    yield { type: 'response.delta', delta: sound ? { ...wholeSound(sound), content_id: 'sound' } : picture(media ?? '') }
    yield text(words)
  } else if (shape === 'one delta') {
    yield sound ? soundDelta(sound) : text(words)
  } else if (sound) {
    const piece = size === MANY_DELTAS ? 2 : SOUND_PIECE
    for (let at = 0; at < sound.length; at += piece) yield soundDelta(sound.subarray(at, at + piece))
  } else if (size === MANY_DELTAS) {
    for (let n = 0; n < DELTAS; n++) yield text(`${n} `)
  } else {
    for (let at = 0; at < words.length; at += PIECE) yield text(words.slice(at, at + PIECE))
  }
}

function soundDelta(bytes: Buffer): Draft {
  return { type: 'audio.delta', audio: bytes.toString('base64'), format: 'pcm16' }
}

function wholeSound(bytes: Buffer): Extract<ContentItem, { type: 'audio' }> {
  return { type: 'audio', audio: bytes.toString('base64'), format: 'pcm16' }
}

function picture(image: string): Extract<ContentItem, { type: 'image' }> {
  return { type: 'image', image, format: 'png' }
}
