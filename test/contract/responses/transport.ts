import type { Seeing, Seen } from './seen.ts'
import type { Shape, ShapeName } from './shapes.ts'

/**
 * `streamed`, `whole`: while it is answered. `again`: after its end, from the beginning. `resumed`: after its end, by a client that had
 * heard one half of the stream and goes on from there; it sees both halves.
 */
export const MODES = ['streamed', 'whole', 'streamed again', 'resumed', 'whole again'] as const
export type Mode = (typeof MODES)[number]
export const LIVE = ['streamed', 'whole'] as const
export const AGAIN = ['streamed again', 'resumed', 'whole again'] as const
export const WHOLE = ['whole', 'whole again'] as const

/** One client and its one prompt. */
export interface Stage {
  readonly url: string
  readonly shape: Shape
  readonly prompt: string
  readonly streamed: boolean
  readonly seeing: Seeing
  /** What the client pays with. */
  readonly coin: string
  /** Resolves when the client is to cancel; never, where it is not. */
  readonly cancelDue: Promise<void>
  /** Resolves when the agent was stopped, or has ended. */
  readonly stopped: Promise<void>
  /** The client leaves before the answer begins, and then lets it begin. */
  readonly leaves: boolean
  letGo(): void
  /** To be done when the cell is. */
  after(task: () => void): void
}

export interface Talk {
  /** Resolves when the client has seen the end. */
  readonly over: Promise<void>
  /** Reads the same answer again. */
  readonly again?: (reading: Reading) => Promise<void>
}

export interface Reading extends Pick<Stage, 'url' | 'seeing' | 'after'> {
  readonly mode: (typeof AGAIN)[number]
}

/** What a client had heard when its connection broke. */
export function firstHalf<T>(told: readonly T[]): readonly T[] {
  return told.slice(0, Math.ceil(told.length / 2))
}

/** What a protocol cannot show, and why. */
export interface Limit {
  readonly why: string
  /** Default: all. */
  readonly shapes?: readonly ShapeName[]
  readonly modes?: readonly Mode[]
  /** What is seen instead. Without it: the protocol has no such cell. */
  readonly sees?: (seen: Seen) => Partial<Seen>
}

/** One protocol: how its client talks, and what it cannot see. */
export interface Transport {
  readonly name: string
  readonly limits: readonly Limit[]
  /** Only what nobody has heard is told again: the client leaves before the answer begins. */
  readonly tellsOnce?: true
  /** Says the prompt, answers what is asked or cancels, and tells `seeing` all of it, up to the end. */
  talk(stage: Stage): Talk
}

/** Cancels when that is due. Resolves when it has, or at once where it is not to. */
export async function cancelling({ shape, cancelDue }: Stage, cancel: () => unknown): Promise<void> {
  if (shape.cancel === undefined) return
  await cancelDue
  await cancel()
}

/** Whether the client answers a question: the other one cancels instead. */
export const answers = ({ shape }: Stage): boolean => shape.asks !== undefined

/** The tool that most clients declare. */
export const TOOL = { name: 'double', description: 'Twice a number', parameters: { type: 'object', properties: {} } }
export const FUNCTION = { type: 'function', function: TOOL } as const

export const ERRORS: readonly ShapeName[] = ['an error before the first word', 'an error in the middle', 'an error at the end']
export const CANCELS: readonly ShapeName[] = ['cancelled before the first word', 'cancelled in the middle']
export const SPEECH: readonly ShapeName[] = [
  'speech that is only streamed',
  'text, then speech',
  'speech, then text',
  'text and speech, again in response.done',
]
export const PAYMENTS: readonly ShapeName[] = ['a question for payment', 'text, then a question for payment']

/** The text of an answer whose spoken words come after its written ones. */
export const wordsLast = (): Partial<Seen> => ({ text: ' I said it.Good day.' })
export const SPEECH_FIRST: readonly ShapeName[] = ['speech, then text']

/** What is seen of an approval that nobody can be asked for. */
export const denied = (): Partial<Seen> => ({ text: 'I did not.', questions: [] })
