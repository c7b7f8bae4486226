import { Channel } from '../../core/channel.ts'
import type { chosenIn } from '../../core/choices.ts'
import { unlessAborted } from '../../core/time.ts'
import type { Slot } from '../../protocol/json.ts'
import type { ContentBlock } from '../../wire/acp/blocks.ts'
import { CANCELLED, type Permission } from './permission.ts'
import type { AcpProcess } from './process.ts'

/** Updates that wait to be passed on before no more are read. */
const UNREAD = 256
/** How long a cancelled prompt may take to be answered before its session is given up. */
const CANCEL_MS = 5_000

type Heard = { readonly update: Slot } | { readonly permission: Permission; readonly answer: (outcome: Slot) => void }

/** Something that can be chosen for a session. */
export interface Setting {
  current: string | null | undefined
  readonly values: readonly string[]
  readonly request: (value: string) => readonly [method: string, params: object]
}

/** A session over there. It has one turn at a time, which hears what comes. */
export class Session {
  readonly id: string
  heard = new Channel<Heard>(UNREAD)
  readonly #process: AcpProcess
  readonly #settings: Readonly<Record<'mode' | 'model', Setting>>
  #taken = true
  #answered: Promise<void> = Promise.resolve()

  constructor(id: string, process: AcpProcess, settings: Readonly<Record<'mode' | 'model', Setting>>) {
    this.id = id
    this.#process = process
    this.#settings = settings
  }

  /** Whether another turn may have it: not before what was cancelled is answered. */
  async take(): Promise<boolean> {
    if (this.#taken) return false
    this.#taken = true
    const answered = unlessAborted(this.#answered, AbortSignal.timeout(CANCEL_MS))
    if (!(await answered.then(() => true).catch(() => false))) return false
    this.heard = new Channel(UNREAD)
    return true
  }

  async choose(chosen: ReturnType<typeof chosenIn>): Promise<void> {
    for (const name of ['mode', 'model'] as const) {
      const setting = this.#settings[name]
      const value = chosen[name]
      if (value === undefined || value === setting.current || !setting.values.includes(value)) continue
      const [method, params] = setting.request(value)
      await this.#process.ask(method, { sessionId: this.id, ...params })
      setting.current = value
    }
  }

  /** What is heard ends with the answer, or when nobody waits for that any more. */
  prompt(prompt: readonly ContentBlock[], signal: AbortSignal): Promise<unknown> {
    const answer = this.#process.request('session/prompt', { sessionId: this.id, prompt })
    const { heard } = this
    const close = (): void => heard.close()
    this.#answered = answer.then(close, close)
    signal.addEventListener('abort', close, { once: true })
    return answer
  }

  /** The turn is over, or leaves it in the middle. */
  leave({ over }: { readonly over: boolean }): void {
    this.heard.close()
    this.#taken = false
    if (!over) this.#process.notify('session/cancel', { sessionId: this.id })
  }

  async update(update: Slot): Promise<void> {
    await this.heard.put({ update })
  }

  /** One that nobody hears is not given. */
  permission(permission: Permission): Promise<Slot> {
    return new Promise((resolve) => {
      void this.heard.put({ permission, answer: resolve }).then((isHeard) => {
        if (!isHeard) resolve(CANCELLED)
      })
    })
  }
}
