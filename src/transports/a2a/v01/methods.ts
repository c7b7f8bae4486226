/** A2A 0.1 over JSON-RPC. What it shares with later generations (`tasks/get`, `tasks/cancel`, `tasks/resubscribe`) is with those. */
import type { Method, Methods } from '../binding.ts'
import { parseParams } from '../parse.ts'
import { toPush } from '../v03/read.ts'
import { TaskIdParams } from '../v03/schema.ts'
import { toSendRequest } from './read.ts'
import { SetPushParams, TaskSendParams } from './schema.ts'
import { fromMessage, fromPush, fromTask, streamResult } from './write.ts'

const send: Method = async ({ tasks, call, host }, params) => {
  const asked = parseParams(TaskSendParams, params)
  const result = await tasks.send(call, toSendRequest(asked, host.newId()))
  if ('task' in result) return { result: fromTask(result.task) }
  // It knew no answer without a task: the message is what the task ends with.
  const status = { state: 'completed', message: fromMessage(result.message), timestamp: new Date(host.now()).toISOString() }
  return { result: { id: asked.id ?? host.newId(), sessionId: result.message.contextId ?? asked.sessionId ?? null, status } }
}

const sendSubscribe: Method = async ({ tasks, call, host }, params) =>
  streamResult(await tasks.stream(call, toSendRequest(parseParams(TaskSendParams, params), host.newId())))

/** A task had one of them, and it had no id. */
const setPush: Method = async ({ call, push }, params) => {
  const { id, pushNotificationConfig } = parseParams(SetPushParams, params)
  return { result: fromPush(await push.set(call, { ...toPush(pushNotificationConfig), id, taskId: id })) }
}

const getPush: Method = async ({ call, push }, params) => {
  const { id } = parseParams(TaskIdParams, params)
  return { result: fromPush(await push.get(call, { taskId: id })) }
}

/** By their names. */
export const v01Methods: Methods = {
  'tasks/send': send,
  'tasks/sendSubscribe': sendSubscribe,
  'tasks/pushNotification/set': setPush,
  'tasks/pushNotification/get': getPush,
}
