import type { RpcId } from '../../wire/json-rpc.ts'

/** A prompt and the response that answers it. */
export interface Prompting {
  /** The `session/prompt` that waits for its answer. Undefined: it was answered that a payment is needed, for which the response waits. */
  id: RpcId | undefined
  /** The response that answers it. */
  readonly response: string | null
  /** What it pays with, until somebody asked. */
  payment: string | undefined
  /** What it says, by which it is known again. */
  readonly words: string
  /** What the session is called after it, if it has no name. */
  readonly title: string | undefined
  /** The client's tools that the agent knows of. */
  readonly offered: ReadonlySet<string>
  /** The client shows what it says. */
  shown: boolean
}
