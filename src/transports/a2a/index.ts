import type { Host, HttpRoute, Transport } from '../../core/ports/transport.ts'
import { createCards, type CardOptions } from './card/index.ts'
import { v01 } from './dialects/v01.ts'
import { v03 } from './dialects/v03.ts'
import { v1 } from './dialects/v1.ts'
import { rpcRefusal } from './errors.ts'
import { rpcRoutes } from './json-rpc.ts'
import { fromTask, legacyTaskRoutes } from './legacy-tasks.ts'
import type { Generation, Task } from './model.ts'
import type { Parts } from './operations.ts'
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
  return { host, tasks, push, card: createCards(host, options), x402: options.x402 ?? false }
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
