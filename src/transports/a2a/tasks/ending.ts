import type { EndDraft } from '../../../core/ports/keeper.ts'
import { isQuestion, isWaiting, stopReason } from '../../../core/reading/response-fold.ts'
import type { ContentItem } from '../../../protocol/content.ts'
import type { Draft, EventOf } from '../../../protocol/events.ts'
import { isRecord, type Json } from '../../../protocol/json.ts'
import { textOf } from '../../../protocol/message.ts'
import { demandInWords } from '../../../protocol/payment-refusal.ts'
import type { Message, Part, Struct, TaskState } from '../model.ts'
import { offer, receipts, type PaidEnd } from './x402.ts'

type Asked = Draft<EventOf<'tool.call' | 'x.approval.request' | 'payment.required'>>

/** Ends that an agent can name; its text is then the message of the status. */
const STOPS: Readonly<Record<string, TaskState>> = {
  input_required: 'TASK_STATE_INPUT_REQUIRED',
  auth_required: 'TASK_STATE_AUTH_REQUIRED',
  rejected: 'TASK_STATE_REJECTED',
}

/** How a response left its task. */
export interface Ending {
  readonly state: TaskState
  /** Undefined: the artifacts say everything. */
  readonly message: Pick<Message, 'parts' | 'metadata'> | undefined
  /** The agent waits for answers. */
  readonly waits: boolean
  /** The text is the message, and was not streamed before. */
  readonly quiet: boolean
  /** Undefined: the response failed, and only its record has what it said. */
  readonly output: readonly ContentItem[] | undefined
  /** What the agent says about the task. */
  readonly metadata: Struct | undefined
}

/** Gathers what the end of a response is made from. */
export class Endings {
  readonly #questions: Asked[] = []
  readonly #payments: Draft<EventOf<'payment.accepted' | 'payment.error'>>[] = []
  #spoke = false

  see(event: Draft): void {
    if (isQuestion(event)) this.#questions.push(event)
    else if (event.type === 'payment.accepted' || event.type === 'payment.error') this.#payments.push(event)
    else if (event.type === 'response.delta' && event.delta.type === 'text') this.#spoke = true
  }

  end(event: EndDraft, now: number): Ending {
    const base = { waits: false, quiet: false, metadata: undefined }
    switch (event.type) {
      case 'response.cancelled':
        return { ...base, state: 'TASK_STATE_CANCELED', message: this.#message([], { paid: {} }), output: event.partial_output ?? [] }
      case 'response.error': {
        const { code, message, details } = event.error
        const wait = details?.['retry_after']
        const metadata = { code, ...(typeof wait === 'number' && { retry_after: wait }) }
        const text = code === 'interrupted' ? `Interrupted: ${message}` : message
        return {
          ...base,
          state: 'TASK_STATE_FAILED',
          message: this.#message([{ text }], { metadata, paid: { details } }),
          output: undefined,
        }
      }
      case 'response.done':
        return this.#done(event, now)
    }
  }

  #done({ response }: Draft<EventOf<'response.done'>>, now: number): Ending {
    const { output, extensions } = response
    const { a2a } = extensions ?? {}
    const metadata = isRecord(a2a) && isRecord(a2a['metadata']) ? (a2a['metadata'] as Struct) : undefined
    const base = { output, metadata, waits: false, quiet: false }
    if (isWaiting({ response })) {
      const question = asked(this.#questions, now)
      return { ...base, waits: true, state: 'TASK_STATE_INPUT_REQUIRED', message: this.#message(question.parts, { ...question, paid: {} }) }
    }
    const paid = { extensions }
    const state = STOPS[stopReason({ response }) ?? '']
    if (state === undefined) return { state: 'TASK_STATE_COMPLETED', message: this.#message([], { paid }), ...base }
    const text = textOf(output)
    return { ...base, state, quiet: !this.#spoke, message: this.#message(text === '' ? [] : [{ text }], { paid }) }
  }

  #message(
    parts: readonly Part[],
    { metadata, paid: end }: { readonly metadata?: Struct | undefined; readonly paid: PaidEnd },
  ): Ending['message'] {
    const paid = this.#payments.length === 0 ? undefined : receipts(this.#payments, end)
    if (parts.length === 0 && !paid) return undefined
    const all = { ...paid?.metadata, ...metadata }
    const said = parts.length > 0 ? parts : [{ text: paid?.text ?? '' }]
    return { parts: said, ...(Object.keys(all).length > 0 && { metadata: all }) }
  }
}

/** The questions of a task: in words, and as data that a program can answer. */
function asked(questions: readonly Asked[], now: number): { readonly parts: Part[]; readonly metadata: Struct | undefined } {
  const payment = questions.find((event) => event.type === 'payment.required')
  return {
    parts: [{ text: questions.map(inWords).join('\n') }, ...questions.map((question) => ({ data: question as unknown as Json }))],
    metadata: payment && offer(payment, now),
  }
}

function inWords(question: Asked): string {
  switch (question.type) {
    case 'tool.call':
      return `Run the tool "${question.name}" with ${question.arguments} and answer with its result.`
    case 'x.approval.request':
      return question.message
    case 'payment.required':
      return demandInWords(question)
  }
}
