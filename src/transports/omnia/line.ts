import { eachBatch } from '../../core/each-batch.ts'
import type { Batch, Reader, Session } from '../../core/ports/session.ts'
import { reportError } from '../../core/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, ServerEvent, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { pcm16 } from '../../wire/audio/samples.ts'
import { inputsOf } from './content.ts'
import { errorInfo } from './errors.ts'
import { enabled } from './media/index.ts'
import { Narrator } from './narrator.ts'
import { placeOf, type Position } from './positions.ts'
import type { Message } from './schema.ts'
import type { Link } from './shared.ts'
import { ToolCalls } from './tool-calls.ts'

export interface LineOptions {
  /** The last that the client has seen of the session. Default: all that there is. */
  readonly after?: number | undefined
  /** What the client calls the session, where that is not its id. */
  readonly alias?: string | undefined
  /** Nothing was said in it, nor put into it. */
  readonly isFresh?: boolean
}

/** A session as one connection has it: one message at a time goes in, and what the session says comes out. */
export class Line {
  readonly session: Session
  readonly calls: ToolCalls
  isFresh: boolean
  readonly #link: Link
  readonly #alias: string | undefined
  readonly #reader: Reader
  readonly #position: Position
  readonly #narrator: Narrator
  readonly #unwatch: (() => void) | undefined
  #clientTools: ReadonlySet<string>
  /** A message is being answered. */
  #busy = false
  /** It waits for money, and the client was told so. */
  #unpaid = false
  /** Something was said while another answer was given. */
  #owed = false
  #over: (() => void) | undefined
  /** Nothing more is told here. */
  ended = false

  constructor(link: Link, session: Session, { after = session.head, alias, isFresh = false }: LineOptions = {}) {
    const { host, options, limits, positions, media, binary } = link
    this.session = session
    this.isFresh = isFresh
    this.#link = link
    this.#alias = alias
    this.#reader = session.read({ after, extensions: ['x.approval.request'] })
    this.#position = positions.enter(session, after)
    this.#clientTools = namesOf(session.config.tools)
    this.#narrator = new Narrator({
      sessionId: session.id,
      binary,
      showsTool: (name) => options.toolMessages === true && !this.#clientTools.has(name),
      newId: host.newId,
    })
    this.calls = new ToolCalls(limits, (answer) => this.#send(answer))
    this.#unwatch = media?.watch(placeOf(session), (upload_complete) => void this.tell('upload_complete', { upload_complete }))
  }

  /** Whether a message with that id belongs here. */
  isCalled(id: string): boolean {
    return !this.ended && (id === this.session.id || id === this.#alias)
  }

  /** An answer may run already: it was begun before, or elsewhere. */
  async begin(): Promise<void> {
    const { host, principal } = this.#link
    // The reader was there before: the end of what runs is still to come.
    const turn = this.session.turn === null ? undefined : await host.gateway.turn(this.session.turn, principal)
    this.#busy = turn?.status === 'open'
    void this.#follow()
  }

  /** Nobody listens any more; for a while somebody may come back for what was missed. */
  leave(): void {
    const { host, limits } = this.#link
    this.ended = true
    this.#position.until = host.now() + limits.resumeMs
    this.#unwatch?.()
    this.calls.clear()
    this.#reader.close()
    this.#over?.()
  }

  async tell(type: string, body?: Slot): Promise<void> {
    this.#narrator.now = this.#link.host.now()
    this.#narrator.tell(type, body)
    await this.#link.socket.send(this.#narrator.take())
  }

  refuse(thrown: unknown): Promise<void> {
    const error = reportError(this.#link.host, thrown, { transport: 'omnia', message: 'A message failed', session: this.session.id })
    return this.tell('error', { error: errorInfo(error) })
  }

  async say(message: Message): Promise<void> {
    const { limits, options, media, principal } = this.#link
    const { metadata, ext } = message
    const consent_grants = message.consent_grants ?? message.session_consent_grants
    const token = metadata?.['payment_token']
    if (this.#unpaid && typeof token === 'string') {
      this.#unpaid = false
      return this.#send({ type: 'payment.submit', payment: { scheme: 'token', token } })
    }
    this.checkIdle()
    const inputs = await inputsOf(message, {
      resolve: (ref) => enabled(media).resolve(ref, this.session.id, principal),
      most: limits.inlineLength,
    })
    if (this.#unpaid) await this.#giveUp()
    const tools = ext?.tools ? [...(options.clientTools ?? []), ...ext.tools] : undefined
    if (tools) this.#clientTools = namesOf(tools)
    const extensions = metadata != null || consent_grants != null ? { omnia: { metadata, consent_grants } } : undefined
    await this.#begin(async () => {
      for (const input of inputs) await this.#send(input)
      await this.#send({ type: 'response.create', response: { tools, extensions } })
    })
    this.isFresh = false
  }

  /** What was spoken. An answer that runs is not broken off for it; the next one is about it. */
  async hear(samples: Int16Array): Promise<void> {
    this.isFresh = false
    await this.#send({ type: 'input.audio', audio: pcm16(samples), format: 'pcm16', is_final: true })
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
    if (this.#busy && !this.#unpaid) throw new UampError('rate_limited', 'too many in-flight requests')
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
    if (!this.ended) await over
  }

  /** The outbound loop: everything between the cursor and the head in one write. */
  async #follow(): Promise<void> {
    try {
      await eachBatch(this.#reader, (batch) => this.#write(batch))
    } catch (error) {
      this.#link.host.log('error', 'A reader failed', { session: this.session.id, error })
      this.#link.socket.close(1011, 'Internal error')
    } finally {
      this.ended = true
    }
  }

  async #write(batch: Batch): Promise<void> {
    const narrator = this.#narrator
    narrator.now = this.#link.host.now()
    let last: number | undefined
    batch.visit({
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
    await this.#link.socket.send(narrator.take())
    if (last !== undefined) this.#position.seq = last
  }

  #notice(event: ServerEvent): void {
    switch (event.type) {
      case 'response.created':
        // Also one that was begun elsewhere: its words could not be told from those of another.
        this.#busy = true
        return
      case 'tool.call':
        return this.calls.asked(event.call_id)
      case 'x.approval.request':
        return this.calls.asked(event.approval_id)
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
    this.#busy = this.#unpaid = this.#narrator.muted = false
    this.calls.clear()
    this.#over?.()
    if (!this.#owed || this.ended) return
    this.#owed = false
    this.#respond().catch((thrown: unknown) => this.refuse(thrown))
  }

  #send(event: Unsent): Promise<void> {
    return this.session.send({ ...event, event_id: this.#link.host.newId() } as ClientEvent)
  }
}

function namesOf(tools: readonly ToolDefinition[] = []): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.function.name))
}
