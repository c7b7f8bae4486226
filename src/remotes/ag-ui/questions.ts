import * as z from 'zod/mini'
import type { Turn } from '../../core/ports/agent.ts'
import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { PaymentRequirements } from '../../protocol/payment.ts'

const maybe = <T extends z.core.SomeType>(schema: T) => z.optional(z.nullable(schema))

const Interrupt = z.object({
  id: maybe(z.string()),
  reason: maybe(z.string()),
  message: maybe(z.string()),
  toolCallId: maybe(z.string()),
  responseSchema: z.optional(z.unknown()),
  metadata: z.optional(z.unknown()),
})
export type Interrupt = z.infer<typeof Interrupt>

export function interruptsIn(given: readonly unknown[]): Interrupt[] {
  return given.flatMap((one) => z.safeParse(Interrupt, one).data ?? [])
}

export type ResumeEntry = { readonly interruptId: string; readonly status: 'resolved' | 'cancelled'; readonly payload?: unknown }

/** An interrupt that a yes or a no does not answer: its words are said, and what the user says next is the answer. */
export function isOpenQuestion({ reason }: Interrupt): boolean {
  return reason === 'input_required'
}

/** Puts what the other side asks to our client. All are asked at once: on a one-way transport the first of them ends the response. */
export class Asking {
  readonly #turn: Turn
  readonly #offered: ReadonlySet<string>
  readonly #asked = new Map<string, number>()

  constructor(turn: Turn, offered: ReadonlySet<string>) {
    this.#turn = turn
    this.#offered = offered
  }

  async result({ id, name, arguments: args }: ToolCall): Promise<ToolResult> {
    try {
      if (!this.#offered.has(name)) throw new UampError('not_found', `There is no tool "${name}"`)
      // The other side has seen what the conversation holds.
      const options = { key: `tool.call ${id}`, anew: true }
      const answer = await this.#turn.ask('tool.call', { call_id: id, name, arguments: args }, options)
      const { result, is_error = false, content_items } = answer
      return { call_id: id, result, status: is_error ? 'failed' : 'completed', is_error, ...(content_items && { content_items }) }
    } catch (thrown) {
      this.#turn.signal.throwIfAborted()
      return { call_id: id, result: JSON.stringify({ error: UampError.from(thrown).toBody() }), status: 'failed', is_error: true }
    }
  }

  async resume(interrupt: Interrupt, calls: ReadonlyMap<string, ToolCall>): Promise<ResumeEntry> {
    const { metadata, reason: why, toolCallId, responseSchema } = interrupt
    const interruptId = interrupt.id ?? ''
    const uamp = isRecord(metadata) && isRecord(metadata['uamp']) ? metadata['uamp'] : {}
    const { data: requirements } = z.safeParse(PaymentRequirements, uamp['requirements'])
    if (requirements) {
      const { payment } = await this.#turn.ask('payment.required', { requirements })
      return { interruptId, status: 'resolved', payload: { payment_token: payment.token, payment } }
    }
    const message = interrupt.message ?? why ?? 'May I go on?'
    const tool_call = calls.get(toolCallId ?? '')
    const question = { message, ...(tool_call && { tool_call: { ...tool_call } }), ...optionsIn(uamp) }
    try {
      // By what is asked: in a turn that is run again the ids are new.
      const key = this.#key(`approval ${message} ${tool_call?.name} ${tool_call?.arguments}`)
      const { approved, option, reason } = await this.#turn.ask('x.approval.request', question, { key })
      if (!approved && reason === 'approval_unavailable') return { interruptId, status: 'cancelled' }
      const how = { ...(option !== undefined && { option }), ...(reason !== undefined && { reason }) }
      return { interruptId, status: 'resolved', payload: payloadFor(responseSchema, approved, how) }
    } catch {
      this.#turn.signal.throwIfAborted()
      return { interruptId, status: 'cancelled' }
    }
  }

  #key(content: string): string {
    const number = (this.#asked.get(content) ?? 0) + 1
    this.#asked.set(content, number)
    return `${content} #${number}`
  }
}

/** As the schema of the interrupt wants it: a yes or a no as such, or under the name of its one property that is one. */
function payloadFor(schema: unknown, approved: boolean, how: object): unknown {
  const { type, properties } = isRecord(schema) ? schema : {}
  if (type === 'boolean') return approved
  const names = isRecord(properties) ? Object.keys(properties) : []
  const flag = names.find((name) => isRecord(properties) && isRecord(properties[name]) && properties[name]['type'] === 'boolean')
  return { [names.includes('approved') || flag === undefined ? 'approved' : flag]: approved, ...how }
}

const Options = z.array(z.object({ id: z.string(), label: z.string(), kind: z.optional(z.string()) }))

function optionsIn({ options }: Readonly<Record<string, unknown>>): { options?: z.infer<typeof Options> } {
  const { data } = z.safeParse(Options, options)
  return data ? { options: data } : {}
}
