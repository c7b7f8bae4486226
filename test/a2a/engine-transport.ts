import type { Host, Transport } from '../../src/core/ports/transport.ts'
import { told } from '../../src/transports/a2a/errors.ts'
import type { ListRequest, SendRequest, StreamEvent } from '../../src/transports/a2a/model.ts'
import { restLines, streamAnswer } from '../../src/transports/a2a/stream.ts'
import { Tasks, type TaskPush, type TasksOptions } from '../../src/transports/a2a/tasks/index.ts'

/** What was told to webhooks, in order. */
export interface Pushed {
  readonly taskId: string
  readonly owner: string
  readonly event: StreamEvent
}

export interface EngineOptions extends TasksOptions {
  readonly pushed?: Pushed[]
  /** For what has to be in the store before. */
  readonly onHost?: (host: Host) => void
}

/** The engine without a protocol: each of its calls is a route, what goes in and out is its own JSON. */
export function engineTransport({ pushed = [], onHost, ...options }: EngineOptions = {}): Transport {
  const push: TaskPush = {
    check({ url }) {
      if (!url.startsWith('https:')) throw new Error('not https')
    },
    attach: async (_, config) => ({ ...config, id: config.id ?? 'c1' }),
    none: () => undefined,
    notify: ({ id }, { taskId }, event) => void pushed.push({ taskId, owner: id, event }),
    owe: async () => undefined,
    debts: async function* () {},
    forgive: async () => undefined,
  }
  return {
    name: 'engine',
    routes(host) {
      onHost?.(host)
      const tasks = new Tasks(host, options, push)
      const json = async (run: () => Promise<unknown>): Promise<Response> => {
        try {
          return Response.json(await run())
        } catch (thrown) {
          const { status, reason, message, details } = told(thrown)
          return Response.json({ error: { reason, message, details } }, { status })
        }
      }
      const asked = async (request: Request): Promise<SendRequest> => ({
        generation: '1.0',
        returnImmediately: false,
        ...((await request.json()) as Pick<SendRequest, 'message'>),
      })
      const lines = restLines((event) => [event])
      return [
        {
          method: 'POST',
          path: '/t/send',
          access: 'request',
          handle: async (request, call) => json(async () => tasks.send(call, await asked(request))),
        },
        {
          method: 'POST',
          path: '/t/stream',
          access: 'request',
          handle: async (request, call) => {
            try {
              return streamAnswer(await tasks.stream(call, await asked(request)), lines)
            } catch (thrown) {
              return json(() => Promise.reject(thrown))
            }
          },
        },
        {
          method: 'GET',
          path: '/t/tasks/:id/events',
          access: 'request',
          handle: async (request, call) => {
            try {
              const after = request.headers.get('last-event-id') ?? undefined
              return streamAnswer(
                await tasks.subscribe(call, { id: call.params['id'] ?? '', after, stays: request.headers.has('x-stays') }),
                lines,
              )
            } catch (thrown) {
              return json(() => Promise.reject(thrown))
            }
          },
        },
        {
          method: 'GET',
          path: '/t/tasks/:id',
          access: 'request',
          handle: (request, call) => {
            const length = new URL(request.url).searchParams.get('historyLength')
            return json(() => tasks.get(call, { id: call.params['id'] ?? '', historyLength: length === null ? undefined : Number(length) }))
          },
        },
        {
          method: 'GET',
          path: '/t/tasks/:id/generation',
          access: 'request',
          handle: (_, call) => json(() => tasks.generationOf(call, call.params['id'] ?? '')),
        },
        {
          method: 'POST',
          path: '/t/list',
          access: 'request',
          handle: (request, call) =>
            json(async () =>
              tasks.list(call, { pageSize: 50, includeArtifacts: false, ...((await request.json()) as Partial<ListRequest>) }),
            ),
        },
        {
          method: 'POST',
          path: '/t/tasks/:id/cancel',
          access: 'request',
          handle: (_, call) => json(() => tasks.cancel(call, call.params['id'] ?? '')),
        },
      ]
    },
  }
}
