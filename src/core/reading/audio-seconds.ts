import { bytesIn } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import type { Usage } from '../../protocol/usage.ts'

type Audio = Extract<ContentItem, { type: 'audio' }>

/** Bytes of one sample, and samples a second unless the item says otherwise. */
const RAW: Readonly<Record<string, readonly [bytes: number, rate: number]>> = {
  pcm16: [2, 24_000],
  g711_ulaw: [1, 8_000],
  g711_alaw: [1, 8_000],
}

/** Base64 of the header of a WAV file: 44 bytes, and one more to fill the last group. */
const WAV_HEAD = 60
const WAV_BYTES = 44

/** UAMP events §8.7: adds the seconds of sound that went in and out. What the agent or its provider said counts first. */
export function withSeconds(usage: Usage | undefined, input: readonly Message[], output: readonly ContentItem[]): Usage | undefined {
  const heard = secondsOf(input.flatMap((message) => message.content_items ?? []))
  const said = secondsOf(output)
  if (heard === undefined && said === undefined) return usage
  const counted = { ...(heard !== undefined && { input_seconds: heard }), ...(said !== undefined && { output_seconds: said }) }
  return { ...usage, audio: { ...counted, ...usage?.audio } }
}

/** Undefined if there is no sound, or none whose length can be told. */
function secondsOf(items: readonly ContentItem[]): number | undefined {
  const lengths = items.flatMap((item) => (item.type === 'audio' ? (lengthOf(item) ?? []) : []))
  if (lengths.length === 0) return undefined
  return Math.round(lengths.reduce((sum, length) => sum + length, 0) * 1000) / 1000
}

function lengthOf({ audio, format = 'pcm16', duration_ms, sample_rate, channels = 1 }: Audio): number | undefined {
  if (duration_ms !== undefined) return duration_ms / 1000
  if (typeof audio !== 'string' || /^(https?|data):/.test(audio.slice(0, 8))) return undefined
  const bytes = Math.floor((audio.length * 3) / 4) - (audio.endsWith('==') ? 2 : audio.endsWith('=') ? 1 : 0)
  if (format === 'wav') return wavLength(audio, bytes)
  const raw = RAW[format]
  if (!raw) return undefined
  const [size, usual] = raw
  const rate = (sample_rate ?? usual) * channels * size
  return rate > 0 ? bytes / rate : undefined
}

/** The header says how many bytes a second has. Its own length may be unknown, when the file was streamed. */
function wavLength(audio: string, bytes: number): number | undefined {
  const head = bytesIn(audio.slice(0, WAV_HEAD))
  if (!head || head.length < WAV_BYTES) return undefined
  const perSecond = new DataView(head.buffer, head.byteOffset).getUint32(28, true)
  return perSecond > 0 ? (bytes - WAV_BYTES) / perSecond : undefined
}
