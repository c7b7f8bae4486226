import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { AgentPort, Turn } from '../../../src/core/ports/agent.ts'
import type { ContentItem } from '../../../src/protocol/content.ts'
import type { Draft } from '../../../src/protocol/events.ts'
import { textOf } from '../../../src/protocol/message.ts'
import { NOTHING, type Question, type Seen } from './seen.ts'

/** When the client of a shape cancels. */
type CancelPoint = 'before the first word' | 'in the middle' | 'while a question waits' | 'after the end'

/** One way in which an answer can go. */
export interface Shape {
  /** What the agent does. `hold` waits until the turn is stopped. */
  readonly run: (turn: Turn, hold: () => Promise<never>) => AsyncGenerator<Draft, void>
  /** What a client would see that is shown everything. Beyond this, it is `NOTHING`. */
  readonly truth: Partial<Seen>
  readonly asks?: Question
  readonly cancel?: CancelPoint
  /** The client asks for sound. */
  readonly speaks?: true
}

export const RESULT = 'eight'
const PICTURE: ContentItem = { type: 'image', image: 'iVBORaaa', format: 'png' }
const CALL = { id: 'call_1', name: 'look', arguments: '{"at":"it"}' }
const LOOKED = 'look {"at":"it"} = found'
const USAGE = { input_tokens: 3, output_tokens: 7 }
const FAILURE: Draft = { type: 'response.error', error: { code: 'provider_error', message: 'It broke' } }
const LONG = 'x'.repeat(64 * 1024)
const COUNT = 10_000
const SAMPLES = Buffer.alloc(480, 1).toString('base64')

const delta = (item: ContentItem): Draft => ({ type: 'response.delta', delta: item })
const done = (output: ContentItem[], usage?: typeof USAGE): Draft => ({
  type: 'response.done',
  response: { id: '', status: 'completed', output, ...(usage && { usage }) },
})
const call: ContentItem = { type: 'tool_call', tool_call: CALL }
const result: ContentItem = { type: 'tool_result', tool_result: { call_id: CALL.id, result: 'found' } }

const SPOKEN: readonly Draft[] = [
  { type: 'audio.delta', audio: SAMPLES, format: 'pcm16' },
  { type: 'transcript.delta', transcript: 'Good ' },
  { type: 'audio.delta', audio: SAMPLES, format: 'pcm16' },
  { type: 'transcript.delta', transcript: 'day.' },
]
const RECORDED: ContentItem = {
  type: 'audio',
  audio: Buffer.alloc(960, 1).toString('base64'),
  format: 'pcm16',
  transcript: 'Good day.',
}

/** Says just these. */
const says = (...drafts: readonly Draft[]) =>
  async function* (): AsyncGenerator<Draft, void> {
    yield* drafts
  }

/** Of ACP's clients the tools have names that ACP gives them; A2A's can declare none. */
async function callClient(turn: Turn): Promise<string> {
  const name = turn.config.tools?.[0]?.function.name ?? 'double'
  return (await turn.ask('tool.call', { name, arguments: '{"path":"/notes.txt"}' })).result
}

async function pay(turn: Turn): Promise<string> {
  const { payment } = await turn.ask('payment.required', { requirements: { amount: '5', currency: 'USD', schemes: [{ scheme: 'token' }] } })
  return payment.scheme
}

export const SHAPES = {
  empty: { run: says(), truth: {} },
  'everything in response.done': {
    run: says(done([{ type: 'thinking', thinking: 'Hm.' }, call, result, { type: 'text', text: 'All at once.' }, PICTURE], USAGE)),
    truth: { text: 'All at once.', thoughts: 'Hm.', media: 1, calls: [LOOKED], usage: 7 },
  },
  'thoughts and tools, the words in response.done': {
    run: says({ type: 'thinking', content: 'Hm.' }, delta(call), delta(result), done([{ type: 'text', text: 'At the end.' }])),
    truth: { text: 'At the end.', thoughts: 'Hm.', calls: [LOOKED] },
  },
  'only media': { run: says(delta(PICTURE)), truth: { media: 1 } },
  'only a tool call': { run: says(delta(call), delta(result)), truth: { calls: [LOOKED] } },
  'text after tools': { run: says(delta(call), delta(result), text('I looked.')), truth: { text: 'I looked.', calls: [LOOKED] } },
  'only thinking': {
    run: says({ type: 'thinking', content: 'Hm, ', is_delta: true }, { type: 'thinking', content: 'no.', is_delta: true }),
    truth: { thoughts: 'Hm, no.' },
  },
  "a call of the client's tool": {
    async *run(turn) {
      yield text(`It says ${await callClient(turn)}.`)
    },
    asks: 'tool.call',
    truth: { text: 'It says eight.', questions: ['tool.call'] },
  },
  "text, then a call of the client's tool": {
    async *run(turn) {
      yield text('Let me see. ')
      yield text(`It says ${await callClient(turn)}.`)
    },
    asks: 'tool.call',
    truth: { text: 'Let me see. It says eight.', questions: ['tool.call'] },
  },
  'a question for approval': {
    async *run(turn) {
      const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
      yield text(approved ? 'I did it.' : 'I did not.')
    },
    asks: 'x.approval.request',
    truth: { text: 'I did it.', questions: ['x.approval.request'] },
  },
  'a question for payment': {
    async *run(turn) {
      yield text(`Paid with a ${await pay(turn)}.`)
    },
    asks: 'payment.required',
    truth: { text: 'Paid with a token.', questions: ['payment.required'] },
  },
  'text, then a question for payment': {
    async *run(turn) {
      yield text('One thing. ')
      yield text(`Paid with a ${await pay(turn)}.`)
    },
    asks: 'payment.required',
    truth: { text: 'One thing. Paid with a token.', questions: ['payment.required'] },
  },
  'an error before the first word': { run: says(FAILURE), truth: { end: 'error provider_error' } },
  'an error in the middle': { run: says(text('Half of'), FAILURE), truth: { text: 'Half of', end: 'error provider_error' } },
  'an error at the end': {
    run: says(text('All of it.'), { type: 'usage.delta', delta: USAGE }, FAILURE),
    truth: { text: 'All of it.', usage: 7, end: 'error provider_error' },
  },
  'cancelled before the first word': {
    async *run(_, hold) {
      yield await hold()
    },
    cancel: 'before the first word',
    truth: { end: 'cancelled' },
  },
  'cancelled in the middle': {
    async *run(_, hold) {
      yield text('Half of')
      yield await hold()
    },
    cancel: 'in the middle',
    truth: { text: 'Half of', end: 'cancelled' },
  },
  'cancelled while a question waits': {
    async *run(turn) {
      yield text(`It says ${await callClient(turn)}.`)
    },
    cancel: 'while a question waits',
    truth: { questions: ['tool.call'], end: 'cancelled' },
  },
  'cancelled after the end': { run: says(text('All of it.')), cancel: 'after the end', truth: { text: 'All of it.' } },
  'usage late': { run: says(text('Counted.'), { type: 'usage.delta', delta: USAGE }), truth: { text: 'Counted.', usage: 7 } },
  'usage never': { run: says(text('Not counted.')), truth: { text: 'Not counted.' } },
  'speech that is only streamed': { run: says(...SPOKEN), speaks: true, truth: { text: 'Good day.', sound: 960 } },
  'text, then speech': { run: says(text('Listen. '), ...SPOKEN), speaks: true, truth: { text: 'Listen. Good day.', sound: 960 } },
  'speech, then text': { run: says(...SPOKEN, text(' I said it.')), speaks: true, truth: { text: 'Good day. I said it.', sound: 960 } },
  'text and speech, again in response.done': {
    run: says(text('Listen. '), ...SPOKEN, done([{ type: 'text', text: 'Listen. ' }, RECORDED])),
    speaks: true,
    truth: { text: 'Listen. Good day.', sound: 960 },
  },
  '64 KiB in one delta': { run: says(text(LONG)), truth: { text: LONG } },
  '10,000 deltas': {
    async *run() {
      for (let n = 0; n < COUNT; n++) yield text(`${n} `)
    },
    truth: { text: Array.from({ length: COUNT }, (_, n) => `${n} `).join('') },
  },
  /** The process dies before anything of the answer is on disk. See lost.test.ts. */
  'a beginning lost by kill -9': {
    async *run(_, hold) {
      yield text('Lost.')
      yield await hold()
    },
    truth: { end: 'error interrupted' },
  },
} as const satisfies Readonly<Record<string, Shape>>

export type ShapeName = keyof typeof SHAPES
export const LOST: ShapeName = 'a beginning lost by kill -9'
export const shapeOf = (name: ShapeName): Shape => SHAPES[name]
export const truthOf = (name: ShapeName): Seen => ({ ...NOTHING, ...SHAPES[name].truth })

/** What becomes of the turns of one agent, by the number in their prompt. */
export class Marks {
  readonly #marks = new Map<string, () => void>()
  readonly #passed = new Set<string>()

  pass(mark: string): void {
    this.#passed.add(mark)
    this.#marks.get(mark)?.()
  }

  async passed(mark: string): Promise<void> {
    if (!this.#passed.has(mark)) await new Promise<void>((resolve) => this.#marks.set(mark, resolve))
  }
}

/** `late`: the agent waits until it is let go. */
export const promptFor = (shape: ShapeName, number: number, late: boolean): string => `${number}${late ? ' late' : ''}: ${shape}`

/** Does what the newest prompt names. */
export function shapesAgent(marks = new Marks()): AgentPort {
  const run = async function* (turn: Turn): AsyncGenerator<Draft, void> {
    const last = turn.messages.findLast(({ role }) => role === 'user')
    const [, number = '', late, name = ''] = /^(\d+)( late)?: (.*)$/.exec(last?.content ?? textOf(last?.content_items ?? [])) ?? []
    const hold = (): Promise<never> => {
      marks.pass(`${number} holds`)
      return new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason as Error), { once: true }))
    }
    if (late !== undefined) await marks.passed(`${number} go`)
    try {
      yield* shapeOf(name as ShapeName).run(turn, hold)
    } finally {
      marks.pass(`${number} stopped`)
    }
  }
  return defineAgent('shapes', run, { capabilities: { modalities: ['text', 'audio'] } })
}
