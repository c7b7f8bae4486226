import type { Host, HttpRoute, KnownCall, Transport } from '../../core/ports/transport.ts'
import type { Parts } from './binding.ts'
import { createCards } from './card/index.ts'
import { JsonRpc, type Generation } from './json-rpc.ts'
import { legacyTaskRoutes } from './legacy-tasks/index.ts'
import * as early from './legacy-tasks/write.ts'
import type { Generation as Made, Task, Tasks, TaskState } from './model.ts'
import type { A2aOptions } from './options.ts'
import { createPush } from './push/index.ts'
import { restRefusal, rpcRefusal } from './refusal.ts'
import { createTasks } from './tasks/index.ts'
import { v01Methods } from './v01/methods.ts'
import * as v01 from './v01/write.ts'
import { errorData, restV03Refusal } from './v03/errors.ts'
import { v03Methods } from './v03/methods.ts'
import { v03Routes } from './v03/rest.ts'
import * as v03 from './v03/write.ts'
import { errorDetails } from './v1/errors.ts'
import { methods as v1Methods } from './v1/methods.ts'
import { REST, restV1 } from './v1/rest.ts'

export type { AgentCard, AgentSkill, CardAddition, SigningKey } from './card/index.ts'
export type { A2aOptions } from './options.ts'
export type { PushLimits } from './push/index.ts'

/** A2A of every generation: 1.0, 0.3, 0.2 and 0.1, and the `/tasks` that UAMP transports describe. */
export function a2a(options: A2aOptions = {}): Transport {
  return {
    name: 'a2a',
    routes: (host) => {
      const parts = assemble(host, options)
      return [
        ...cardRoutes(parts),
        ...rpcRoutes(parts),
        ...v03Routes(parts).map(refusing),
        ...restRoutes(parts),
        ...legacyTaskRoutes(parts),
      ]
    },
    refusal: rpcRefusal,
  }
}

function assemble(host: Host, options: A2aOptions): Parts {
  const { pushLimits, taskTtlMs } = options
  const owned = (call: KnownCall, id: string): Promise<TaskState> => tasks.stateOf(call, id)
  const push = createPush(host, { owned, shape, ...(pushLimits && { limits: pushLimits }) })
  const tasks: Tasks = createTasks(host, { ...(taskTtlMs !== undefined && { ttlMs: taskTtlMs }) }, push)
  const card = createCards(host, options)
  return { host, tasks, push, card, options }
}

/** A task as its generation writes it. */
function shape(task: Task, generation: Made): object {
  switch (generation) {
    case '1.0':
      return task
    case '0.3':
    case '0.2':
      return v03.fromTask(task)
    case '0.1':
      return v01.fromTask(task)
    case 'tasks':
      return early.fromTask(task)
  }
}

function cardRoutes({ card }: Parts): HttpRoute[] {
  return ['/.well-known/agent-card.json', '/.well-known/agent.json'].map((path) => ({
    method: 'GET',
    path,
    access: 'public',
    handle: (_, call) => card.respond(call),
  }))
}

function rpcRoutes(parts: Parts): HttpRoute[] {
  const generations: Generation[] = [
    { versions: ['1.0'], methods: v1Methods, data: errorDetails },
    { versions: ['0.3', '0.2', '0.1'], methods: { ...v01Methods, ...v03Methods }, data: errorData },
  ]
  const endpoint = new JsonRpc(parts, generations)
  return ['/a2a', '/a2a/'].map((path) => ({
    method: 'POST',
    path,
    access: 'request',
    handle: (request, call) => endpoint.handle(request, call),
  }))
}

/** The methods that some path has; those which one path has are known to `restV1`. */
function restRoutes(parts: Parts): HttpRoute[] {
  return (['GET', 'POST', 'DELETE'] as const).map((method) => ({
    method,
    path: `${REST}/*`,
    access: 'request',
    refusal: restRefusal,
    handle: (_, call) => restV1(parts, call),
  }))
}

function refusing(route: HttpRoute): HttpRoute {
  return { refusal: restV03Refusal, ...route }
}
