/** The operations of A2A, once for all generations and bindings. */
import type { Action } from '../../core/ports/access.ts'
import { jsonAnswer } from '../../core/edge/json-answer.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import type { Cards } from './card/index.ts'
import type { ListRequest, NewPushConfig, PushConfig, SendRequest, SendResult, Task, TaskPage, TaskStream } from './model.ts'
import type { ConfigPage, Push } from './push/index.ts'
import { requireExtensions } from './request.ts'
import type { Shape } from './stream.ts'
import type { Tasks } from './tasks/index.ts'

/** What every part of the transport works with. */
export interface Parts {
  readonly host: Host
  readonly tasks: Tasks
  readonly push: Push
  readonly card: Cards
  /** Tasks are paid by x402. */
  readonly x402: boolean
}

/** What a method gets beside its parameters. */
export interface RpcContext extends Parts {
  readonly call: KnownCall
  /** The extensions that the client activates and the agent has. */
  readonly extensions: readonly string[]
}

export type RpcResult = { readonly result: object | null } | { readonly stream: TaskStream; readonly shape: Shape }

/** Gets `params` as they came. Throws what `errors.ts` makes. */
export type Method = (context: RpcContext, params: unknown) => Promise<RpcResult>

export type Methods = Readonly<Record<string, Method>>

/** How a generation speaks. 0.2 speaks as 0.3 does. */
export interface Dialect {
  readonly version: '1.0' | '0.3' | '0.1'
  /** What the parameters ask for. Throws `INVALID_PARAMS`. */
  readonly read: {
    send(params: unknown, newId: () => string): SendRequest
    get(params: unknown): { readonly id: string; readonly historyLength: number | undefined }
    list(params: unknown): ListRequest
    /** The task to cancel or to follow. */
    task(params: unknown): { readonly id: string }
    setPush(params: unknown): NewPushConfig
    getPush(params: unknown): { readonly taskId: string; readonly id?: string | undefined }
    deletePush(params: unknown): { readonly taskId: string; readonly id: string }
    listPush(params: unknown): { readonly taskId: string; readonly pageSize?: number | undefined; readonly pageToken?: string | undefined }
    card?(params: unknown): void
  }
  /** Answers, which are in the shapes of 1.0 inside. */
  readonly write: {
    sent(result: SendResult, request: SendRequest, host: Host): object
    task(task: Task): object
    page(page: TaskPage): object
    /** A shape for one stream. */
    events(stream: TaskStream): Shape
    push(config: PushConfig): object
    pushes(page: ConfigPage): object
    /** What a client is answered that deleted a config. */
    readonly deleted: object | null
  }
}

/** What a caller must be allowed to do, beside what the gateway asks. */
const ACTIONS = {
  SendMessage: 'call',
  SendStreamingMessage: 'call',
  GetTask: 'read',
  ListTasks: 'read',
  CancelTask: 'cancel',
  SubscribeToTask: 'read',
  CreateTaskPushNotificationConfig: 'call',
  GetTaskPushNotificationConfig: 'read',
  ListTaskPushNotificationConfigs: 'read',
  DeleteTaskPushNotificationConfig: 'cancel',
  GetExtendedAgentCard: 'read',
} satisfies Record<Operation, Action>

/** By their names in JSON-RPC of 1.0 (§9.4). Each asks first whether its caller may. */
export function operationsIn(dialect: Dialect) {
  const asks = (name: Operation, run: Method): Method => {
    return (context, params) => {
      const { host, call } = context
      host.gateway.authorize(call.principal, ACTIONS[name], call.agent)
      return run(context, params)
    }
  }
  const all = Object.entries(bareOperations(dialect)) as [Operation, Method][]
  return Object.fromEntries(all.map(([name, run]) => [name, asks(name, run)])) as Record<Operation, Method>
}

function bareOperations({ version, read, write }: Dialect) {
  const asked = (context: RpcContext, params: unknown): SendRequest => {
    // 0.1 knows no extensions.
    if (version !== '0.1') requireExtensions(context)
    return read.send(params, context.host.newId)
  }
  const streamed = (stream: TaskStream): RpcResult => ({ stream, shape: write.events(stream) })
  return {
    async SendMessage(context, params) {
      const request = asked(context, params)
      return { result: write.sent(await context.tasks.send(context.call, request), request, context.host) }
    },
    async SendStreamingMessage(context, params) {
      return streamed(await context.tasks.stream(context.call, asked(context, params)))
    },
    async GetTask({ call, tasks }, params) {
      return { result: write.task(await tasks.get(call, read.get(params))) }
    },
    async ListTasks({ call, tasks }, params) {
      return { result: write.page(await tasks.list(call, read.list(params))) }
    },
    async CancelTask({ call, tasks }, params) {
      return { result: write.task(await tasks.cancel(call, read.task(params).id)) }
    },
    async SubscribeToTask({ call, tasks }, params) {
      const after = call.request.headers.get('last-event-id') ?? undefined
      return streamed(await tasks.subscribe(call, { id: read.task(params).id, after, stays: version === '1.0' }))
    },
    async CreateTaskPushNotificationConfig({ call, push }, params) {
      return { result: write.push(await push.set(call, { ...read.setPush(params), generation: version })) }
    },
    async GetTaskPushNotificationConfig({ call, push }, params) {
      return { result: write.push(await push.get(call, read.getPush(params))) }
    },
    async ListTaskPushNotificationConfigs({ call, push }, params) {
      return { result: write.pushes(await push.list(call, read.listPush(params))) }
    },
    async DeleteTaskPushNotificationConfig({ call, push }, params) {
      await push.delete(call, read.deletePush(params))
      return { result: write.deleted }
    },
    async GetExtendedAgentCard({ call, card }, params) {
      read.card?.(params)
      return { result: await card.extended(call, version) }
    },
  } satisfies Methods
}

export type Operation = keyof ReturnType<typeof bareOperations>

/** Tells a client which extensions are in use, by the header of its generation. */
export function extensionHeaders({ extensions }: RpcContext, name = 'a2a-extensions'): Readonly<Record<string, string>> {
  return extensions.length === 0 ? {} : { [name]: extensions.join(', ') }
}

/** A result as an answer. A large one counts as the caller's until it is written. */
export function resultAnswer({ host, call }: RpcContext, result: object, headers: Readonly<Record<string, string>>): Response | Streamed {
  return jsonAnswer(result, { headers, gateway: host.gateway, principal: call.principal })
}
