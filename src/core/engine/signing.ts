import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { asksToSign, type ResponseSigner } from '../ports/signing.ts'
import type { Logger } from '../ports/transport.ts'
import type { TurnRecord } from '../durable/records.ts'
import { resultsIn, type End } from './run.ts'
import type { ActiveTurn } from './turn.ts'

/** How long an answer waits for its signature. The first one of a server waits for a new key, which takes a while on a busy machine. */
const SIGN_MS = 20_000

interface Signing {
  readonly host: { readonly signer: ResponseSigner | undefined; readonly log: Logger }
  readonly turn: Pick<ActiveTurn, 'responseId' | 'principal' | 'signal' | 'trace' | 'requestHash'>
  readonly record: TurnRecord
  /** The session's configuration. */
  readonly config: SessionConfig
}

/** The end with a signature, if it is to have one. Undefined: it stays as it is, and nothing is awaited. */
export function signedEnd(end: End, signing: Signing): Promise<End> | undefined {
  const { host, record, config } = signing
  if (end.kind !== 'done' || !host.signer) return undefined
  const asked = asksToSign(record.asked?.extensions) ?? asksToSign((record.config ?? config).extensions)
  return host.signer.signs(asked) ? withSignature(end, host.signer, signing) : undefined
}

type Done = Extract<End, { kind: 'done' }>

async function withSignature(end: Done, signer: ResponseSigner, { host, turn, record }: Signing): Promise<End> {
  const signature = await bounded(turn.signal, () =>
    signer.sign({
      id: turn.responseId,
      agent: record.agent,
      principal: turn.principal,
      messages: messagesOf(record),
      requestHash: turn.requestHash,
      output: end.output,
    }),
  ).catch((error: unknown) => {
    host.log('error', 'A response is not signed', { response: turn.responseId, error, ...turn.trace?.fields })
    return undefined
  })
  if (signature === undefined) return end
  if (end.signature === undefined) return { ...end, signature }
  // The agent, on another server, has signed what it said. Its signature stays, and ours is beside it.
  const uamp = end.extensions?.['uamp']
  return { ...end, extensions: { ...end.extensions, uamp: { ...(typeof uamp === 'object' && uamp), signature } } }
}

/** What a response answers: its messages, or the results that a turn goes on with. */
function messagesOf({ input, given = [] }: TurnRecord): readonly Message[] {
  const results = resultsIn(given).map(({ tool_result: { call_id, result } }) => ({
    role: 'tool' as const,
    tool_call_id: call_id,
    content: result,
  }))
  return [...input, ...results]
}

/** Rejects when it takes too long, or when the turn is stopped: the answer must get out before the server closes. */
async function bounded<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let giveUp: (reason: Error) => void = () => undefined
  const givenUp = new Promise<never>((_, reject) => (giveUp = reject))
  const stopped = (): void => giveUp(new Error('The response was stopped while it was signed'))
  const timer = setTimeout(() => giveUp(new Error(`Signing took longer than ${SIGN_MS} ms`)), SIGN_MS)
  signal.addEventListener('abort', stopped)
  try {
    return await Promise.race([work(), givenUp])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stopped)
  }
}
