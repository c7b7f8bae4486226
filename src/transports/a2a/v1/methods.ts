/** The operations of A2A 1.0 by their names in JSON-RPC (§9.4). REST calls the same ones. */
import type * as z from 'zod/mini'
import type { Method, Methods, RpcContext, RpcResult } from '../binding.ts'
import { requireExtensions } from '../context.ts'
import { parseParams } from '../parse.ts'
import { slot, toListRequest, toPushConfig, toSendRequest } from './codec.ts'
import { fromProtoNames } from './proto-names.ts'
import {
  CancelTaskRequest,
  CreatePushConfigRequest,
  ExtendedCardRequest,
  GetTaskRequest,
  ListPushConfigsRequest,
  ListTasksRequest,
  OnePushConfigRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
} from './schema.ts'

export type Operation =
  | 'SendMessage'
  | 'SendStreamingMessage'
  | 'GetTask'
  | 'ListTasks'
  | 'CancelTask'
  | 'SubscribeToTask'
  | 'CreateTaskPushNotificationConfig'
  | 'GetTaskPushNotificationConfig'
  | 'ListTaskPushNotificationConfigs'
  | 'DeleteTaskPushNotificationConfig'
  | 'GetExtendedAgentCard'

export const methods: Readonly<Record<Operation, Method>> & Methods = {
  SendMessage: method(SendMessageRequest, async (context, request) => {
    requireExtensions(context)
    return { result: await context.tasks.send(context.call, toSendRequest(request)) }
  }),
  SendStreamingMessage: method(SendMessageRequest, async (context, request) => {
    requireExtensions(context)
    return { stream: await context.tasks.stream(context.call, toSendRequest(request)), shape: asItIs }
  }),
  GetTask: method(GetTaskRequest, async ({ call, tasks }, { id, historyLength }) => ({
    result: await tasks.get(call, { id, historyLength: historyLength ?? undefined }),
  })),
  ListTasks: method(ListTasksRequest, async ({ call, tasks }, request) => ({ result: await tasks.list(call, toListRequest(request)) })),
  CancelTask: method(CancelTaskRequest, async ({ call, tasks }, { id, metadata }) => ({
    result: await tasks.cancel(call, { id, metadata: slot(metadata) }),
  })),
  SubscribeToTask: method(SubscribeToTaskRequest, async ({ call, tasks }, { id }) => {
    const after = call.request.headers.get('last-event-id') ?? undefined
    return { stream: await tasks.subscribe(call, { id, after, stays: true }), shape: asItIs }
  }),
  CreateTaskPushNotificationConfig: method(CreatePushConfigRequest, async ({ call, push }, { taskId, ...fields }) => ({
    result: await push.set(call, { taskId, ...toPushConfig(fields) }),
  })),
  GetTaskPushNotificationConfig: method(OnePushConfigRequest, async ({ call, push }, { taskId, id }) => ({
    result: await push.get(call, { taskId, id }),
  })),
  ListTaskPushNotificationConfigs: method(ListPushConfigsRequest, async ({ call, push }, { taskId, pageSize, pageToken }) => ({
    result: await push.list(call, { taskId, pageSize: pageSize || undefined, pageToken: pageToken || undefined }),
  })),
  DeleteTaskPushNotificationConfig: method(OnePushConfigRequest, async ({ call, push }, { taskId, id }) => {
    await push.delete(call, { taskId, id })
    return { result: {} }
  }),
  GetExtendedAgentCard: method(ExtendedCardRequest, async ({ call, card }) => ({ result: await card.extended(call, '1.0') })),
}

function method<T extends z.ZodMiniType>(schema: T, run: (context: RpcContext, request: z.output<T>) => Promise<RpcResult>): Method {
  return async (context, params) => run(context, parseParams(schema, fromProtoNames(params ?? {})))
}

function asItIs<T>(event: T): T {
  return event
}
