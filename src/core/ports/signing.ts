import type { ContentItem } from '../../protocol/content.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { Principal } from './access.ts'

/** A complete answer, before anybody sees its end. */
interface SealedResponse {
  readonly id: string
  readonly agent: string
  /** Whoever asked for it. */
  readonly principal: Principal
  /** The messages that it answers: not the conversation before them. */
  readonly messages: readonly Message[]
  /** Their hash, if a protocol hashes what its client wrote. */
  readonly requestHash: string | undefined
  readonly output: readonly ContentItem[]
}

/** Signs answers in the name of their agents (UAMP events §6.7). */
export interface ResponseSigner {
  /** Whether an answer is signed. `asked`: what its client says; undefined if it says nothing. */
  signs(asked: boolean | undefined): boolean
  /** Does its work outside of the event loop. Undefined: the server does not know its own address, and cannot sign. */
  sign(response: SealedResponse): Promise<string | undefined>
}

/** What a client says in the `extensions` of a session or a response. */
export function asksToSign(extensions: Readonly<Slot> | undefined): boolean | undefined {
  const slot = extensions?.['uamp']
  const sign = typeof slot === 'object' && slot !== null && 'sign' in slot ? slot.sign : undefined
  return typeof sign === 'boolean' ? sign : undefined
}
