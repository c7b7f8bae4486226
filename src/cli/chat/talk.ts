import type { ServerEvent } from '../../client/node.ts'
import { UampClientError } from '../../client/node.ts'
import { UampError } from '../../protocol/errors.ts'
import { Approvals } from './approvals.ts'
import type { Connection, Opened } from './connection.ts'
import { Conversation, type Outcome } from './conversation.ts'
import { EXIT } from './exit-codes.ts'
import { inputsOf, mentionedIn, type Attachment } from './files.ts'
import type { Console } from './input/console.ts'
import type { Page } from './page.ts'
import type { ChatPayments } from './payments.ts'
import { runCommand, type Next } from './slash.ts'
import type { State } from './state.ts'
import { Transcript } from './transcript.ts'

/** A second Ctrl-C within this time leaves. */
const AGAIN_MS = 2_000
const QUIT = /^\/(?:exit|quit|bye)$/

export interface TalkOptions {
  readonly connection: Connection
  readonly page: Page
  readonly console: Console
  readonly state: State
  readonly payments: ChatPayments
  readonly show: (event: ServerEvent) => void
  /** What `uamp chat` was called with. */
  readonly target: string
  readonly agent: string | undefined
  /** The session to go on with. */
  readonly session: string | undefined
  /** Goes with the first message. */
  readonly attached: readonly Attachment[]
  /** Files that messages name with `@` are sent. Lines of a pipe are data, and name none. */
  readonly mentions: boolean
  /** Aborted when the user leaves. */
  readonly left: AbortController
}

type Move = Extract<Next, { do: 'open' }>
type End = Outcome | 'over' | 'left' | 'nothing' | Move

const CODES = {
  well: EXIT.answered,
  failed: EXIT.failed,
  refused: EXIT.refused,
  over: EXIT.failed,
  left: EXIT.interrupted,
  nothing: EXIT.usage,
} as const satisfies Record<Exclude<End, Move>, number>

interface Current {
  readonly conversation: Conversation
  readonly opened: Opened
  /** Rejects if the connection is lost for good. */
  readonly over: Promise<'over'>
}

/** A chat from its first session to its end. */
export class Talk {
  readonly #options: TalkOptions
  readonly #transcript = new Transcript()
  readonly #attached: Attachment[]
  #current: Current | undefined
  /** Something was said in the session, so that it is worth going on with. */
  #said = false
  #interruptedAt = -Infinity

  constructor(options: TalkOptions) {
    this.#options = options
    this.#attached = [...options.attached]
    options.console.onInterrupt(() => this.#interrupt())
  }

  /** Resolves with the exit code. */
  async run(): Promise<number> {
    const { connection, console, page, agent, session, left } = this.#options
    try {
      if (!(await this.#open({ do: 'open', ...(agent !== undefined && { agent }), ...(session !== undefined && { session }) }))) {
        return EXIT.interrupted
      }
      for (;;) {
        const { conversation, over } = this.#current as Current
        const end = await Promise.race([this.#converse(conversation), over, aborted(left.signal)])
        if (typeof end === 'object') {
          await this.#move(end)
          continue
        }
        console.busy()
        if (end === 'over') page.note('(the session has ended)')
        else if (console.interactive && this.#said && connection.keeps)
          page.whole(`To continue later: ${connection.command(conversation.id)}`)
        return console.interactive && end !== 'over' ? EXIT.answered : CODES[end]
      }
    } finally {
      this.#current?.opened.leave()
    }
  }

  /** Tells the user something while the prompt is shown or an answer comes. */
  readonly notice = (text: string): void => {
    if (this.#current) this.#current.conversation.notice(text)
    else this.#options.page.note(text)
  }

  /** Tells why an answer fails. */
  readonly alarm = (text: string): void => {
    if (this.#current) this.#current.conversation.notice(text, true)
    else this.#options.page.error(text)
  }

  #interrupt(): void {
    const { connection, console, left } = this.#options
    const conversation = this.#current?.conversation
    if (!console.interactive && connection.lost) return left.abort()
    if (conversation?.cancel()) {
      if (connection.lost) conversation.notice('(stopped as soon as the connection is back; Ctrl-C again leaves)')
      return
    }
    const now = performance.now()
    if (!console.interactive || !conversation || conversation.busy || now - this.#interruptedAt < AGAIN_MS) return left.abort()
    this.#interruptedAt = now
    conversation.notice('(Ctrl-C again, Ctrl-D or /quit leaves)')
  }

  /** False if the user did not wait for it. */
  async #open({ agent, session }: Move): Promise<boolean> {
    const { connection, page, console, show, left, payments } = this.#options
    const opened = await connection.open({ agent, session, signal: left.signal, tell: this.notice })
    if (!opened) return false
    this.#current?.opened.leave()
    this.#transcript.clear()
    this.#said = session !== undefined
    const conversation = new Conversation(opened.session, {
      page,
      console,
      show,
      // What was allowed in one chat is not in the next, whose agent may be another.
      approvals: new Approvals(console),
      payments,
      transcript: this.#transcript,
      asked: (response) => connection.asked(response),
      resumed: session !== undefined,
    })
    const over = conversation.run().then(
      () => 'over' as const,
      (thrown: unknown) => Promise.reject(this.#lost(thrown, conversation.id)),
    )
    // A session that was left is of no interest any more.
    over.catch(() => undefined)
    this.#current = { conversation, opened, over }
    return true
  }

  async #move(to: Move): Promise<void> {
    const { page, console, left } = this.#options
    console.busy()
    try {
      await this.#open(to)
    } catch (thrown) {
      if (left.signal.aborted) return
      page.error(thrown instanceof Error ? thrown.message : String(thrown))
      console.rest()
    }
  }

  #lost(thrown: unknown, session: string): unknown {
    if (!(thrown instanceof UampClientError) || thrown.code !== 'unreachable') return thrown
    return new UampClientError({ code: thrown.code, message: this.#options.connection.gone(thrown, session) }, thrown)
  }

  /** Sends one message after the other, until there are no more or another session is wanted. */
  async #converse(conversation: Conversation): Promise<End> {
    const { console, page } = this.#options
    let end: End = 'nothing'
    await conversation.caughtUp
    console.rest()
    for (;;) {
      const line = await console.read()
      if (line === undefined || QUIT.test(line.trim())) break
      if (line.trim() === '' && this.#attached.length === 0) continue
      const next = await this.#next(line)
      if (next.do === 'leave') break
      if (next.do === 'open') return next
      if (next.do !== 'say') continue
      const outcome = await this.#say(next.text, conversation)
      if (outcome !== undefined) end = end === 'nothing' || outcome !== 'well' ? outcome : end
    }
    if (end !== 'nothing') return end
    if (!console.interactive)
      page.error('There is nothing to send. Ask something: npx uamp chat "a question", or in a terminal: npx uamp chat')
    return end
  }

  /** Commands are for people: a pipe is data. */
  async #next(line: string): Promise<Next> {
    const { console, page, state, connection, target } = this.#options
    const conversation = (this.#current as Current).conversation
    if (!console.interactive || !line.startsWith('/')) return { do: 'say', text: line }
    console.busy()
    try {
      const desk = { page, console, connection, conversation, state, target, transcript: this.#transcript, attached: this.#attached }
      return await runCommand(line.trim(), desk)
    } catch (thrown) {
      page.error(thrown instanceof Error ? thrown.message : String(thrown))
      return { do: 'stay' }
    } finally {
      console.rest()
    }
  }

  /** Undefined if the message was not sent. */
  async #say(text: string, conversation: Conversation): Promise<Outcome | undefined> {
    const { console, page, state, target, mentions } = this.#options
    try {
      const { attachments, missing } = mentions ? mentionedIn(text) : { attachments: [], missing: [] }
      for (const path of missing) page.note(`(there is no file ${path}; it is sent as a word)`, 'yellow')
      const inputs = inputsOf(text, [...this.#attached, ...attachments])
      if (console.interactive && !this.#said)
        state.begin({ at: Date.now(), target, session: conversation.id, agent: conversation.agent, title: text })
      this.#said = true
      this.#attached.length = 0
      this.#transcript.add('user', text)
      return await conversation.say(inputs)
    } catch (thrown) {
      if (!(thrown instanceof UampError)) throw thrown
      page.error(thrown.message)
      console.rest()
      return console.interactive ? undefined : 'failed'
    }
  }
}

function aborted(signal: AbortSignal): Promise<'left'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('left')
    signal.addEventListener('abort', () => resolve('left'))
  })
}
