import { text } from '../../core/agent-kit/drafts.ts'
import { isCurrency, parseAmount } from '../../protocol/money.ts'
import type { Turn } from '../../core/ports/agent.ts'
import { toolRunner } from '../../core/tools/tool-loop.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { itemsOf, textOf, type Message } from '../../protocol/message.ts'
import { CHUNK_BYTES, emptyMp4, PNG, SAMPLE_RATE, tone } from './media.ts'
import { base64, bytesIn } from '../../protocol/base64.ts'
import type { Draft } from '../../protocol/events.ts'
import { sample } from './sample.ts'
import { pacer, tools } from './tools.ts'

type Drafts = AsyncGenerator<Draft, void>
type Command = (rest: string, turn: Turn) => Drafts

/** Bounds, because a demo on a public address must stay cheap. */
const MAX_STEPS = 10_000
const MAX_BYTES = 16 * 1024 * 1024
const MAX_SECONDS = 30
const PIECE = 64 * 1024

/** What the demo says to the last message of its user: an echo, or what a slash command shows. */
export function answer(turn: Turn): Drafts {
  // Messages of tools may follow.
  const last = turn.messages.findLast(({ role }) => role === 'user')
  // If a message has several inputs, the last one is the command.
  const texts = last?.content_items?.flatMap((item) => (item.type === 'text' ? [item.text] : []))
  const [, name, rest = ''] = /^\/(\w+)\s*([^]*)$/.exec(texts?.at(-1) ?? last?.content ?? '') ?? []
  if (name === undefined) return reply(last, turn)
  const command = COMMANDS.get(name)
  return command ? command.run(rest.trim(), turn) : say(`There is no command /${name}. Try /help.`, turn)
}

function reply(last: Message | undefined, turn: Turn): Drafts {
  const items = last?.content_items ?? []
  const heard = items.find((item) => item.type === 'audio')
  if (heard && !items.some((item) => item.type === 'text')) return answerAudio(heard, turn)
  return say(`You said: ${last?.content ?? textOf(items)}`, turn)
}

/** Says a sentence word by word. */
async function* say(sentence: string, turn: Turn): Drafts {
  const words = sentence.match(/\s*\S+\s*$|\s*\S+/g) ?? []
  for (const word of words) yield text(word)
  yield spent(turn, words.length)
}

/** The usage of an answer. The demo has no tokens, so a word of output and four letters of input count as one. */
function spent({ messages }: Turn, words: number): Draft {
  let letters = 0
  for (const { content = '' } of messages) letters += content.length
  return { type: 'usage.delta', delta: { input_tokens: Math.ceil(letters / 4), output_tokens: words } }
}

async function* count(rest: string, turn: Turn): Drafts {
  const [number = '10', ms = '0'] = rest.split(/\s+/)
  const last = numberIn(number, Number.MAX_SAFE_INTEGER, 10)
  const pause = numberIn(ms, 60_000, 0)
  const wait = pause > 0 ? pacer(pause, turn.signal) : undefined
  for (let n = 1; n <= last; n++) {
    if (wait && n > 1) await wait()
    yield text(n === 1 ? '1' : ` ${n}`)
  }
  yield spent(turn, last)
}

async function* think(rest: string, turn: Turn): Drafts {
  for (const piece of ['Someone wants me to think about', ` "${rest}".`, ' I have thought about it.']) {
    yield { type: 'thinking', content: piece, stage: 'analyzing', is_delta: true }
  }
  yield* say(`I thought about: ${rest}`, turn)
}

async function* tool(rest: string, turn: Turn): Drafts {
  const [, name = 'clock', args = '{}'] = /^(\S+)\s*([^]*)$/.exec(rest) ?? []
  const run = toolRunner(turn, { tools })([{ id: `call_${turn.id}_1`, name, arguments: args === '' ? '{}' : args }])
  const [result] = yield* run
  yield* say(`${name} ${result?.is_error ? 'failed' : 'answered'}: ${result?.result}`, turn)
}

async function* approve(rest: string, turn: Turn): Drafts {
  const { approved, reason } = await turn.ask('x.approval.request', { message: rest === '' ? 'May I?' : rest })
  yield* say(`${approved ? 'Approved' : 'Denied'}: ${rest}${reason === undefined ? '' : ` (${reason})`}`, turn)
}

async function* progress(rest: string, turn: Turn): Drafts {
  const total = numberIn(rest, MAX_STEPS, 3)
  for (let step = 1; step <= total; step++) {
    yield {
      type: 'progress',
      target: 'response',
      stage: 'working',
      message: `Step ${step} of ${total}`,
      percent: Math.round((100 * step) / total),
      step,
      total_steps: total,
    }
  }
  yield* say(`Done in ${total} steps.`, turn)
}

async function* image(_rest: string, turn: Turn): Drafts {
  yield {
    type: 'response.delta',
    delta: { type: 'image', image: PNG, format: 'png', alt_text: 'One orange pixel', ...handle('One orange pixel') },
  }
  yield* say('Here is an image.', turn)
}

async function* file(_rest: string, turn: Turn): Drafts {
  const contents = 'name,value\ndemo,1\n'
  const item = { filename: 'demo.csv', mime_type: 'text/csv', size_bytes: contents.length, ...handle('A table of one row') }
  yield { type: 'response.delta', delta: { type: 'file', file: btoa(contents), ...item } }
  yield* say('Here is a file.', turn)
}

async function* video(_rest: string, turn: Turn): Drafts {
  yield {
    type: 'response.delta',
    delta: { type: 'video', video: base64(emptyMp4()), format: 'mp4', duration_ms: 0, ...handle('A video without frames') },
  }
  yield* say('Here is a video.', turn)
}

async function* audio(rest: string, turn: Turn): Drafts {
  const seconds = Math.min(Number(rest) > 0 ? Number(rest) : 1, MAX_SECONDS)
  yield* speak({ bytes: tone(seconds), transcript: `A tone of ${seconds} s.`, description: 'A tone' }, turn)
}

/** An amount and a currency, as `0.05 EUR`. */
function priceIn(rest: string, usual: string): { amount: string; currency: string } {
  const [amount = '', currency = 'USD'] = rest.split(/\s+/)
  const price = { amount: amount === '' ? usual : amount, currency }
  if (parseAmount(price.amount) === undefined || !isCurrency(currency)) {
    throw new UampError('invalid_request', `"${rest}" is no amount of money: write it as 0.05, or as 0.05 EUR`)
  }
  return price
}

async function* pay(rest: string, turn: Turn): Drafts {
  const price = priceIn(rest, '0.01')
  await turn.charge({ ...price, reason: 'The demo wants to be paid' })
  yield* say(`Paid ${price.amount} ${price.currency}. Thank you.`, turn)
}

async function* topup(rest: string, turn: Turn): Drafts {
  const price = priceIn(rest, '0.01')
  yield* say('This is the first half of the answer.', turn)
  await turn.charge({ ...price, reason: 'The demo wants more money before it goes on' })
  yield* say(` Paid ${price.amount} ${price.currency}: this is the second half.`, turn)
}

async function* json(_rest: string, { config }: Turn): Drafts {
  const format = config.response_format
  const value = format?.type === 'json_schema' ? sample(format.json_schema.schema ?? {}) : { answer: 'demo', ok: true }
  for (const piece of JSON.stringify(value).match(/[^]{1,16}/g) ?? []) yield text(piece)
}

async function* state(_rest: string, turn: Turn): Drafts {
  yield { type: 'x.state.snapshot', snapshot: { count: 0, items: [] } }
  for (let n = 1; n <= 3; n++) {
    yield {
      type: 'x.state.delta',
      delta: [
        { op: 'replace', path: '/count', value: n },
        { op: 'add', path: '/items/-', value: `item ${n}` },
      ],
    }
  }
  yield* say('The state went from 0 to 3.', turn)
}

async function* error(rest: string): Drafts {
  const code = rest === '' ? 'internal' : (rest.split(/\s+/)[0] as string)
  yield { type: 'response.error', error: { code, message: `You asked me to fail with "${code}"` } }
}

async function* history(_rest: string, { messages }: Turn): Drafts {
  for (const [index, message] of messages.entries()) yield text(`${index === 0 ? '' : '\n'}${message.role}: ${lineOf(message)}`)
}

async function* big(rest: string): Drafts {
  let left = numberIn(rest, MAX_BYTES, 1024)
  for (; left > 0; left -= PIECE) yield text('x'.repeat(Math.min(left, PIECE)))
}

/** For features that this package does not have yet. */
function notSupported(what: string): Command {
  return async function* () {
    throw new UampError('not_supported', `${what} is not supported yet`)
  }
}

async function* help(_rest: string, turn: Turn): Drafts {
  yield* say(`I echo what you say, or do one thing: ${[...COMMANDS.keys()].map((name) => `/${name}`).join(' ')}`, turn)
}

/** Each command, and what it shows, for clients that offer commands to people. */
export const COMMANDS: ReadonlyMap<string, { readonly run: Command; readonly meaning: string }> = new Map(
  Object.entries({
    count: { run: count, meaning: 'Counts: how far, and how many milliseconds between two numbers' },
    think: { run: think, meaning: 'Thinks aloud before it answers' },
    tool: { run: tool, meaning: 'Calls a tool: clock, add, or one of yours' },
    approve: { run: approve, meaning: 'Asks you before it does something' },
    progress: { run: progress, meaning: 'Reports how far it has come' },
    image: { run: image, meaning: 'Shows a picture' },
    file: { run: file, meaning: 'Gives you a file' },
    audio: { run: audio, meaning: 'Plays a sound' },
    video: { run: video, meaning: 'Shows a film' },
    json: { run: json, meaning: 'Answers in JSON' },
    pay: { run: pay, meaning: 'Asks for a payment before it answers: how much, and of what' },
    topup: { run: topup, meaning: 'Asks for more money in the middle of an answer' },
    delegate: { run: notSupported('Delegation'), meaning: 'Has another agent do it: not there yet' },
    state: { run: state, meaning: 'Changes the state that you share with it' },
    error: { run: error, meaning: 'Fails' },
    history: { run: history, meaning: 'Tells what was said so far' },
    big: { run: big, meaning: 'Gives a long answer' },
    help: { run: help, meaning: 'Lists the commands' },
  }),
)

function numberIn(given: string, max: number, usual: number): number {
  const number = Math.floor(Number(given))
  return given === '' || !(number >= 0) ? usual : Math.min(number, max)
}

function lineOf(message: Message): string {
  return itemsOf(message).map(shown).join(' ').replace(/\s+/g, ' ').trim()
}

function shown(item: ContentItem): string {
  switch (item.type) {
    case 'text':
      return item.text
    case 'thinking':
      return `[thinking ${item.thinking}]`
    case 'tool_call':
      return `[call ${item.tool_call.name} ${item.tool_call.arguments}]`
    case 'tool_result':
      return `[result ${item.tool_result.result}]`
    default:
      return `[${item.type} ${item.content_id}]`
  }
}

interface Speech {
  readonly bytes: Uint8Array
  readonly transcript: string
  readonly description: string
}

/** Audio and its transcript, a tenth of a second at a time; then the whole item. */
async function* speak({ bytes, transcript, description }: Speech, turn: Turn): Drafts {
  const words = transcript.match(/\s*\S+/g) ?? []
  const duration_ms = Math.round((bytes.length / 2 / SAMPLE_RATE) * 1000)
  for (let at = 0, chunk = 0; at < bytes.length; at += CHUNK_BYTES, chunk++) {
    yield { type: 'audio.delta', audio: base64(bytes.subarray(at, at + CHUNK_BYTES)), format: 'pcm16' }
    const word = words[chunk]
    if (word !== undefined) yield { type: 'transcript.delta', transcript: word }
  }
  yield { type: 'audio.done', duration_ms }
  yield { type: 'transcript.done', transcript }
  yield {
    type: 'response.delta',
    delta: { type: 'audio', audio: base64(bytes), format: 'pcm16', duration_ms, transcript, ...handle(description) },
  }
  yield spent(turn, words.length)
}

/** Answers audio with audio: repeats samples, and plays a tone for other formats. */
function answerAudio({ audio, format }: Extract<ContentItem, { type: 'audio' }>, turn: Turn): Drafts {
  const heard = typeof audio === 'string' && (format === undefined || format === 'pcm16') ? bytesIn(audio) : undefined
  if (!heard) return speak({ bytes: tone(1), transcript: 'I heard you, but I only repeat pcm16.', description: 'A tone' }, turn)
  const seconds = (heard.length / 2 / SAMPLE_RATE).toFixed(1)
  return speak({ bytes: heard, transcript: `You said ${seconds} s of audio.`, description: 'What you said' }, turn)
}

function handle(description: string): { content_id: string; description: string } {
  return { content_id: crypto.randomUUID(), description }
}
