import type { Session } from '../../../core/ports/session.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { SessionConfig } from '../../../protocol/session-config.ts'
import { paymentFrom } from '../../../wire/payment.ts'
import type { SendRequest } from '../model.ts'
import { toInput } from './content-in.ts'
import type { TaskRecord } from './records.ts'
import type { Shared } from './shared.ts'

interface Opening {
  readonly request: SendRequest
  readonly record: Pick<TaskRecord, 'id' | 'contextId' | 'agent'>
  /** The turn that it goes on from. */
  readonly parent: string | undefined
  /** Nobody is told of it before its response has ended. */
  readonly silent?: boolean
}

/** A session for what was said, which goes on from what was said before. */
export async function openSession(
  { host }: Shared,
  { principal, request }: KnownCall,
  { request: asked, record, parent, silent = false }: Opening,
): Promise<Session> {
  const payment = paymentFrom(request.headers)
  const init = {
    transport: 'a2a',
    agent: record.agent,
    principal,
    config: configOf(asked, record),
    duplex: false,
    persist: true,
    onDetach: 'finish',
    silent,
    input: [toInput(asked.message)],
    ...(payment && { payment }),
  } as const
  if (parent === undefined) return host.gateway.open(init)
  try {
    return await host.gateway.open({ ...init, parent })
  } catch (thrown) {
    // What was said before has expired or was deleted: the conversation begins anew.
    if (thrown instanceof UampError && thrown.code === 'not_found') return host.gateway.open(init)
    throw thrown
  }
}

/** What an agent may want to know of the request, beyond what was said. */
function configOf({ message, acceptedOutputModes, metadata }: SendRequest, { id, contextId }: Opening['record']): SessionConfig {
  const a2a = {
    messageId: message.messageId,
    contextId,
    taskId: id,
    ...(message.metadata && { metadata: message.metadata }),
    ...(message.extensions && { extensions: message.extensions }),
    ...(message.referenceTaskIds && { referenceTaskIds: message.referenceTaskIds }),
    ...(acceptedOutputModes && { acceptedOutputModes }),
    ...(metadata && { requestMetadata: metadata }),
  }
  return { modalities: ['text'], extensions: { a2a } }
}
