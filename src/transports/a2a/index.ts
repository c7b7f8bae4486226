import type { Host, HttpRoute, Transport } from '../../core/ports/transport.ts'
import { createCards, type CardOptions } from './card/index.ts'
import { v01 } from './dialects/v01.ts'
import { v03 } from './dialects/v03.ts'
import { v1 } from './dialects/v1.ts'
import { errorData, errorDetails, rpcRefusal } from './errors.ts'
import { answerRpc, type Generation as Served } from './json-rpc.ts'
import { fromTask, legacyTaskRoutes } from './legacy-tasks.ts'
import type { Generation, Task } from './model.ts'
import { operationsIn, type Method, type Methods, type Operation, type Parts } from './operations.ts'
import { createPush, type PushLimits } from './push/index.ts'
import { restRoutes } from './rest.ts'
import { Tasks } from './tasks/index.ts'

export type { AgentCard, AgentSkill, CardAddition, SigningKey } from './card/index.ts'
export type { PushLimits } from './push/index.ts'

/** What the operator of a server may set for A2A. */
export interface A2aOptions extends CardOptions {
  /** How long a task is kept after its last change. Default: as long as a session. */
  readonly taskTtlMs?: number
  /** What bounds push notifications. */
  readonly pushLimits?: Partial<PushLimits>
}

/** A2A of every generation: 1.0, 0.3, 0.2 and 0.1, and the `/tasks` that UAMP transports describe. */
export function a2a(options: A2aOptions = {}): Transport {
  return {
    name: 'a2a',
    routes: (host) => {
      const parts = assemble(host, options)
      return [...cardRoutes(parts), ...rpcRoutes(parts), ...restRoutes(parts), ...legacyTaskRoutes(parts)]
    },
    refusal: rpcRefusal,
  }
}

function assemble(host: Host, options: A2aOptions): Parts {
  const push = createPush(host, { owned: (call, id) => tasks.stateOf(call, id), shape, limits: options.pushLimits })
  const tasks: Tasks = new Tasks(host, { ttlMs: options.taskTtlMs }, push)
  return { host, tasks, push, card: createCards(host, options) }
}

/** A task in the shape of the generation that made it. */
function shape(task: Task, generation: Generation): object {
  return generation === 'tasks' ? fromTask(task) : DIALECTS[generation].write.task(task)
}

const DIALECTS = { '1.0': v1, '0.3': v03, '0.2': v03, '0.1': v01 }

function cardRoutes({ card }: Parts): HttpRoute[] {
  return ['/.well-known/agent-card.json', '/.well-known/agent.json'].map((path) => ({
    method: 'GET',
    path,
    access: 'public',
    handle: (_, call) => card.respond(call),
  }))
}

function rpcRoutes(parts: Parts): HttpRoute[] {
  const generations: Served[] = [
    { versions: ['1.0'], methods: operationsIn(v1), data: errorDetails },
    { versions: ['0.3', '0.2', '0.1'], methods: earlierMethods(), data: errorData },
  ]
  return ['/a2a', '/a2a/'].map((path) => ({
    method: 'POST',
    path,
    access: 'request',
    body: 'text',
    handle: (_, call) => answerRpc(parts, call, generations),
  }))
}

/** The methods before 1.0, by their names. */
function earlierMethods(): Methods {
  const [in03, in01] = [operationsIn(v03), operationsIn(v01)]
  /** 0.1 and later generations have this method: a task is shown in the shapes that it was made with, one of 1.0 as 0.3 would. */
  const either =
    (operation: Operation): Method =>
    async (context, params) => {
      const made = await context.tasks.generationOf(context.call, v03.read.task(params).id)
      return (made === '0.1' || made === 'tasks' ? in01 : in03)[operation](context, params)
    }
  return {
    'message/send': in03.SendMessage,
    'message/stream': in03.SendStreamingMessage,
    'tasks/get': either('GetTask'),
    'tasks/cancel': either('CancelTask'),
    'tasks/resubscribe': either('SubscribeToTask'),
    'tasks/pushNotificationConfig/set': in03.CreateTaskPushNotificationConfig,
    'tasks/pushNotificationConfig/get': in03.GetTaskPushNotificationConfig,
    'tasks/pushNotificationConfig/list': in03.ListTaskPushNotificationConfigs,
    'tasks/pushNotificationConfig/delete': in03.DeleteTaskPushNotificationConfig,
    'agent/getAuthenticatedExtendedCard': in03.GetExtendedAgentCard,
    'tasks/send': in01.SendMessage,
    'tasks/sendSubscribe': in01.SendStreamingMessage,
    'tasks/pushNotification/set': in01.CreateTaskPushNotificationConfig,
    'tasks/pushNotification/get': in01.GetTaskPushNotificationConfig,
  }
}
