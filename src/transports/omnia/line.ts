import type { Batch, Reader, Session } from '../../core/ports/session.ts'
import type { Host, Socket } from '../../core/ports/transport.ts'
import { base64 } from '../../protocol/base64.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent } from '../../protocol/events.ts'
import { inputsOf, type Resolve } from './content.ts'
import { errorInfo, omniaError } from './errors.ts'
import { Narrator } from './narrator.ts'
import type { OmniaLimits, OmniaOptions } from './options.ts'
import type { Position } from './positions.ts'
import type { Message } from './schema.ts'
import { ToolCalls } from './tool-calls.ts'

export interface LineOptions {
  readonly host: Pick<Host, 'log' | 'now' | 'newId'>
  readonly socket: Socket
  readonly session: Session
  readonly reader: Reader
  readonly position: Position
  /** An answer runs already: it was begun before, or elsewhere. */
  readonly isBusy: boolean
  readonly binary: boolean
  readonly options: OmniaOptions
  readonly limits: OmniaLimits
  readonly resolve: Resolve
}

type Unsent<E> = E extends unknown ? Omit<E, 'event_id'> : never

/** A session as one connection has it: one message at a time goes in, and what the session says comes out. */
export class Line {
  readonly session: Session
  readonly #options: LineOptions
  readonly #narrator: Narrator
  readonly #calls: ToolCalls
  readonly #approvals = new Set<string>()
  #clientTools: ReadonlySet<string>
  /** A message is being answered. */
  #busy: boolean
  /** It waits for money, and the client was told so. */
  #unpaid = false
  /** Something was said while another answer was given. */
  #owed = false
  #over: (() => void) | undefined
  #left = false
  ended = false

  constructor(options: LineOptions) {
    const { session, host, binary, limits } = options
    this.session = session
    this.#options = options
    this.#busy = options.isBusy
    this.#clientTools = namesOf(session.config.tools)
    this.#narrator = new Narrator({
      sessionId: session.id,
      binary,
      toolMessages: options.options.toolMessages ?? false,
      isClientTool: (name) => this.#clientTools.has(name),
      newId: host.newId,
    })
    const onLate = (id: string, reason: string): void => void this.answer(id, { error: reason }).catch(() => undefined)
    this.#calls = new ToolCalls({ ackMs: limits.toolAckMs, resultMs: limits.toolResultMs, onLate })
  }

  get busy(): boolean {
    return this.#busy && !this.#unpaid
  }

  /** The outbound loop: everything between the cursor and the head in one write. */
  async follow(): Promise<void> {
    const { reader, host, socket } = this.#options
    try {
      const batches = reader[Symbol.asyncIterator]()
      while (await this.#write(batches));
    } catch (error) {
      host.log('error', 'A reader failed', { session: this.session.id, error })
      socket.close(1011, 'Internal error')
    } finally {
      this.ended = true
    }
  }

  /** Nobody listens any more; until then somebody may come back for what was missed. */
  leave(until: number): void {
    this.#left = true
    this.#options.position.until = until
    this.#calls.clear()
    this.#options.reader.close()
    this.#over?.()
  }

  async tell(type: string, body?: Record<string, unknown>): Promise<void> {
    const { socket, host } = this.#options
    this.#narrator.now = host.now()
    this.#narrator.tell(type, body)
    await socket.send(this.#narrator.take())
  }

  async say(message: Message): Promise<void> {
    const { resolve, limits, options } = this.#options
    const token = message.metadata?.['payment_token']
    if (this.#unpaid && typeof token === 'string') {
      this.#unpaid = false
      return this.#send({ type: 'payment.submit', payment: { scheme: 'token', token } })
    }
    this.checkIdle()
    const inputs = await inputsOf(message, resolve, limits.inlineLength)
    if (this.#unpaid) await this.#giveUp()
    const { metadata, consent_grants, session_consent_grants, ext } = message
    const tools = ext?.tools ? [...(options.clientTools ?? []), ...ext.tools] : undefined
    if (tools) this.#clientTools = namesOf(tools)
    const beside = { metadata, consent_grants: consent_grants ?? session_consent_grants }
    const extensions = Object.values(beside).some((value) => value != null) ? { omnia: beside } : undefined
    await this.#begin(async () => {
      for (const input of inputs) await this.#send(input)
      await this.#send({ type: 'response.create', response: { tools, extensions } })
    })
  }

  /** What was spoken. An answer that runs is not broken off for it; the next one is about it. */
  async hear(sound: Uint8Array): Promise<void> {
    await this.#send({ type: 'input.audio', audio: base64(sound), format: 'pcm16', is_final: true })
    if (this.#busy) this.#owed = true
    else await this.#respond()
  }

  /** Somebody speaks: what is said now is cut short, and the client plays no more of it. */
  async interrupt(): Promise<void> {
    if (!this.#busy) return
    await this.tell('interrupt')
    this.cancel()
  }

  cancel(): void {
    // Refused when it has just ended by itself: its end is in the log.
    if (this.#busy) this.#send({ type: 'response.cancel' }).catch(() => undefined)
  }

  checkIdle(): void {
    if (this.busy) throw new UampError('rate_limited', 'too many in-flight requests')
  }

  acknowledge(id: string): void {
    this.#calls.acknowledged(id)
  }

  /** What became of a call that was put to the client. */
  async answer(id: string, { result, error }: { readonly result?: unknown; readonly error?: string | null | undefined }): Promise<void> {
    const failed = error != null && error !== ''
    this.#calls.settled(id)
    try {
      if (this.#approvals.delete(id)) {
        const approved = !failed && result !== false
        await this.#send({ type: 'x.approval.response', approval_id: id, approved, ...(failed && { reason: error }) })
      } else {
        const text = failed ? error : typeof result === 'string' ? result : JSON.stringify(result ?? null)
        await this.#send({ type: 'tool.result', call_id: id, result: text, ...(failed && { is_error: true }) })
      }
    } catch (thrown) {
      if (UampError.from(thrown).code !== 'not_found') throw thrown
      throw omniaError('INVALID_MESSAGE', 'not_found', 'no pending tool call')
    }
  }

  #respond(): Promise<void> {
    return this.#begin(() => this.#send({ type: 'response.create', response: { modalities: ['text', 'audio'] } }))
  }

  async #begin(send: () => Promise<void>): Promise<void> {
    this.#busy = true
    try {
      await send()
    } catch (thrown) {
      this.#busy = false
      throw thrown
    }
  }

  /** The client went on without paying. */
  async #giveUp(): Promise<void> {
    this.#narrator.muted = true
    const over = new Promise<void>((resolve) => (this.#over = resolve))
    this.cancel()
    if (!this.#left && !this.ended) await over
  }

  /** A call of its own for each batch: a loop that waits for the next one would keep the last one alive. */
  async #write(batches: AsyncIterator<Batch>): Promise<boolean> {
    const { value, done } = await batches.next()
    if (done) return false
    const { host, socket, position } = this.#options
    const narrator = this.#narrator
    narrator.now = host.now()
    let last: number | undefined
    value.visit({
      text: (text, seq) => {
        last = seq
        narrator.text(text)
      },
      event: (event, seq) => {
        last = seq ?? last
        narrator.event(event)
        this.#notice(event)
      },
    })
    await socket.send(narrator.take())
    if (last !== undefined) position.seq = last
    return true
  }

  #notice(event: ServerEvent): void {
    switch (event.type) {
      case 'response.created':
        // Also one that was begun elsewhere: its words could not be told from those of another.
        this.#busy = true
        return
      case 'tool.call':
        return this.#calls.asked(event.call_id)
      case 'x.approval.request':
        this.#approvals.add(event.approval_id)
        return this.#calls.asked(event.approval_id)
      case 'payment.required':
        this.#unpaid = true
        return
      case 'response.done':
      case 'response.cancelled':
      case 'response.error':
        return this.#idle()
      case 'session.end':
        this.ended = true
        return
      default:
    }
  }

  #idle(): void {
    this.#busy = this.#unpaid = false
    this.#narrator.muted = false
    this.#approvals.clear()
    this.#calls.clear()
    this.#over?.()
    this.#over = undefined
    if (!this.#owed || this.#left) return
    this.#owed = false
    this.#respond().catch((thrown: unknown) => this.tell('error', { error: errorInfo(UampError.from(thrown).toBody()) }))
  }

  #send(event: Unsent<ClientEvent>): Promise<void> {
    return this.session.send({ ...event, event_id: this.#options.host.newId() } as ClientEvent)
  }
}

function namesOf(tools: EventOf<'session.create'>['session']['tools'] = []): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.function.name))
}
