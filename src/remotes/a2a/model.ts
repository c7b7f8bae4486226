/** What an A2A agent says, in one form for all generations. */

import type { Part } from '../../wire/a2a/parts.ts'
import { SPELLED, TERMINAL, type TaskState } from '../../wire/a2a/states.ts'

export type Struct = Readonly<Record<string, unknown>>

/** As 0.3 spells them. A state that we do not know is `unknown`. */
export type State = (typeof SPELLED)[TaskState] | 'unknown'

export const ENDED: ReadonlySet<State> = new Set([...TERMINAL].map((state) => SPELLED[state]))
/** Nothing more comes until somebody answers. */
export const SETTLED: ReadonlySet<State> = new Set([...ENDED, 'input-required', 'auth-required'])

export interface Message {
  readonly id: string | undefined
  readonly role: 'user' | 'agent'
  readonly parts: readonly Part[]
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  readonly metadata: Struct | undefined
  readonly extensions: readonly string[]
}

export interface Status {
  readonly state: State
  readonly message: Message | undefined
}

export interface Artifact {
  readonly id: string
  readonly name: string | undefined
  readonly description: string | undefined
  readonly parts: readonly Part[]
  readonly metadata: Struct | undefined
}

interface OfTask {
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  readonly metadata: Struct | undefined
}

/** One event of a stream, or the answer to a call. */
export type Told =
  | (OfTask & {
      readonly kind: 'task'
      readonly status: Status
      readonly artifacts: readonly Artifact[]
      readonly history: readonly Message[]
    })
  | { readonly kind: 'message'; readonly message: Message }
  | (OfTask & { readonly kind: 'status'; readonly status: Status })
  | (OfTask & { readonly kind: 'artifact'; readonly artifact: Artifact; readonly append: boolean })

export type ToldTask = Extract<Told, { kind: 'task' }>

/** A message from us. */
export interface Outgoing {
  readonly messageId: string
  readonly parts: readonly Part[]
  readonly contextId?: string | undefined
  readonly taskId?: string | undefined
  readonly metadata?: Struct | undefined
  /** Of which there is something in the message. */
  readonly extensions?: readonly string[] | undefined
}
