/** A2A 0.3 and 0.2 over JSON-RPC. */
import type { Method, Methods, RpcContext } from '../binding.ts'
import { requireExtensions } from '../context.ts'
import type { PushConfig, SendRequest } from '../model.ts'
import { parseParams } from '../parse.ts'
import { streamResult } from '../v01/write.ts'
import { earlierTask, isOf01 } from './earlier.ts'
import { toPush, toSendRequest } from './read.ts'
import { resubscribe } from './resubscribe.ts'
import * as schema from './schema.ts'
import { fromEvent, fromMessage, fromPush, fromTask } from './write.ts'

const send: Method = async (context, params) => {
  const result = await context.tasks.send(context.call, asked(context, params))
  return { result: 'task' in result ? fromTask(result.task) : fromMessage(result.message) }
}

const stream: Method = async (context, params) => ({
  stream: await context.tasks.stream(context.call, asked(context, params)),
  shape: fromEvent,
})

function asked(context: RpcContext, params: unknown): SendRequest {
  requireExtensions(context)
  return toSendRequest(parseParams(schema.MessageSendParams, params))
}

const get: Method = async ({ call, tasks }, params) => {
  const { id, historyLength } = parseParams(schema.TaskQueryParams, params)
  const generation = await tasks.generationOf(call, id)
  // A2A 0.1.0 §7.3.1: no history but what is asked for.
  const length = historyLength ?? (isOf01(generation) ? 0 : undefined)
  return { result: earlierTask(await tasks.get(call, { id, historyLength: length }), generation) }
}

const cancel: Method = async ({ call, tasks }, params) => {
  const { id, metadata } = parseParams(schema.TaskIdParams, params)
  const generation = await tasks.generationOf(call, id)
  return { result: earlierTask(await tasks.cancel(call, { id, metadata: metadata ?? undefined }), generation) }
}

const follow: Method = async ({ call, tasks }, params) => {
  const { id } = parseParams(schema.TaskIdParams, params)
  const generation = await tasks.generationOf(call, id)
  const stream = await resubscribe(tasks, call, id)
  return isOf01(generation) ? streamResult(stream) : { stream, shape: fromEvent }
}

/** One that has no id is the task's only one: to set it again is to replace it. The official servers did the same. */
const setPush: Method = async ({ call, push }, params) => {
  const { taskId, pushNotificationConfig } = parseParams(schema.SetPushParams, params)
  return { result: fromPush(await push.set(call, { id: taskId, ...toPush(pushNotificationConfig), taskId })) }
}

const getPush: Method = async ({ call, push }, params) => {
  const { id, pushNotificationConfigId } = parseParams(schema.GetPushParams, params)
  return { result: fromPush(await push.get(call, { taskId: id, id: pushNotificationConfigId || undefined })) }
}

const listPush: Method = async (context, params) => {
  const { id } = parseParams(schema.TaskIdParams, params)
  return { result: (await allPush(context, id)).map(fromPush) }
}

/** All of them: these generations know no pages here. How many a task may have is bounded where they are kept. */
export async function allPush({ call, push }: Pick<RpcContext, 'call' | 'push'>, taskId: string): Promise<PushConfig[]> {
  const all: PushConfig[] = []
  let pageToken: string | undefined
  do {
    const page = await push.list(call, { taskId, pageToken })
    all.push(...page.configs)
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  return all
}

const deletePush: Method = async ({ call, push }, params) => {
  const { id, pushNotificationConfigId } = parseParams(schema.DeletePushParams, params)
  await push.delete(call, { taskId: id, id: pushNotificationConfigId })
  return { result: null }
}

const extendedCard: Method = async ({ call, card }) => ({ result: await card.extended(call) })

/** By their names. */
export const v03Methods: Methods = {
  'message/send': send,
  'message/stream': stream,
  'tasks/get': get,
  'tasks/cancel': cancel,
  'tasks/resubscribe': follow,
  'tasks/pushNotificationConfig/set': setPush,
  'tasks/pushNotificationConfig/get': getPush,
  'tasks/pushNotificationConfig/list': listPush,
  'tasks/pushNotificationConfig/delete': deletePush,
  'agent/getAuthenticatedExtendedCard': extendedCard,
}
