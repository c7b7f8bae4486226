/** From what clients of A2A 0.1 send to the shapes of 1.0. */
import type { Message, SendRequest } from '../model.ts'
import { given, toPart, toPush } from '../v03/read.ts'
import type { Message as WireMessage, TaskSendParams } from './schema.ts'

export function toMessage(message: WireMessage, messageId: string): Message {
  return { messageId, role: 'ROLE_USER', parts: message.parts.map(toPart), ...given('metadata', message.metadata) }
}

export function toSendRequest(params: TaskSendParams, messageId: string): SendRequest {
  const { id, sessionId, message, pushNotification, historyLength, acceptedOutputModes, metadata } = params
  return {
    message: { ...toMessage(message, messageId), ...given('contextId', sessionId) },
    generation: '0.1',
    // One that is there already goes on with this message, any other begins with it.
    ...given('chosenId', id),
    returnImmediately: false,
    // A2A 0.1.0 §7.1.1: no history but what is asked for.
    historyLength: historyLength ?? 0,
    ...given('acceptedOutputModes', acceptedOutputModes),
    ...(pushNotification != null && { push: toPush(pushNotification) }),
    ...given('metadata', metadata),
  }
}
