import type { ClientProfile } from '../../protocol/capabilities.ts'
import type { Message } from '../../protocol/message.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { Turnstile } from '../basics/time.ts'
import type { Log } from '../log/log.ts'
import type { Principal } from '../ports/access.ts'
import type { ClientMethods, Turn } from '../ports/agent.ts'
import type { TurnKeeper } from '../ports/keeper.ts'
import type { Payments } from '../ports/payments.ts'
import type { PaysAnew } from '../ports/session.ts'
import type { Trace } from '../ports/trace.ts'
import type { TurnStore } from '../ports/turn-store.ts'
import type { SessionSecrets } from '../secrets/session-secrets.ts'
import type { Paid } from './paid-before.ts'
import type { Holding } from './budget.ts'
import type { Answer } from './questions.ts'
import type { End } from './run.ts'
import type { ActiveTurn } from './turn.ts'

/** The part of a session that a turn uses. */
export interface TurnHost {
  readonly id: string
  readonly shownId: string
  readonly transport: string
  readonly chat: string | undefined
  readonly owner: Principal
  readonly client: ClientProfile | undefined
  readonly duplex: boolean
  readonly opening?:
    | {
        readonly silent: boolean
        readonly handoff?: string | undefined
        readonly paysAnew?: PaysAnew | undefined
        readonly paidThere?: boolean | undefined
      }
    | undefined
  readonly log: Log
  readonly turnstile: Turnstile
  readonly newId: () => string
  /** The agent's HTTP client, and the redaction of the secrets that it sends. */
  readonly secrets: Pick<SessionSecrets, 'http' | 'text'>
  readonly store: TurnStore
  readonly payments: Payments | undefined
  readonly now: () => number
  /** Closes the response; resolves once readers see the end. */
  ended(turn: ActiveTurn, end: End): Promise<void>
}

export interface TurnStart {
  /** The id of the turn, which is that of its first response. */
  readonly id: string
  /** The response that runs, if it is not the turn's first. */
  readonly responseId?: string
  /** The event that asked for the response: tells the clients of a shared session whose it is. */
  readonly request?: string | undefined
  readonly messages: readonly Message[]
  readonly said?: readonly Message[] | undefined
  readonly config: SessionConfig
  readonly asked?: Turn['asked']
  readonly answers?: Readonly<Record<string, Answer>> | undefined
  readonly payment?: Payment | undefined
  readonly paysAnew?: PaysAnew | undefined
  /** What earlier responses of the turn have paid, by charge. */
  readonly paid?: Paid | undefined
  readonly limits: Pick<CoreLimits, 'turnTimeoutMs' | 'outputBytes'>
  /** Counts the output as it grows. */
  readonly held: Holding
  readonly keeper?: TurnKeeper | undefined
  readonly methods?: ClientMethods | undefined
  /** The hash of the messages that it answers, as their client wrote them. */
  readonly requestHash?: string | undefined
  /** The request that asked for the response. */
  readonly trace?: Trace | undefined
  /** Whoever asks for the response. Default: the session's owner. */
  readonly principal?: Principal | undefined
}

/** What the request has that goes on with a parked turn. */
export type TurnResume = Pick<TurnStart, 'keeper' | 'trace' | 'requestHash' | 'payment' | 'paysAnew'>

/** How long a stopped agent may clean up before its response is closed without waiting for it. */
const STOP_MS = 50

/** Runs a generator's `finally`, but waits no longer than `STOP_MS` for an agent that ignores the signal. */
export async function leave(iterator: AsyncIterator<unknown> | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise((resolve) => (timer = setTimeout(resolve, STOP_MS)))
  await Promise.race([iterator?.return?.(), late]).finally(() => clearTimeout(timer))
}
