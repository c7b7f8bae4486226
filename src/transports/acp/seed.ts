/** The methods of UAMP transports, ACP, which are older than the protocol's own: one request, and notifications while it is answered. */
import { fetchHttp } from '../../core/fetch-http.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Host } from '../../core/ports/transport.ts'
import { toolDefinition } from '../../core/tool.ts'
import { toolRunner } from '../../core/tool-loop.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { notificationText, RPC, RpcError, type RpcId } from '../../wire/json-rpc.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { toldBody } from './errors.ts'
import { CallTool, parse, Submit } from './schema.ts'

interface SeedContext {
  readonly host: Host
  readonly agent: string
  readonly principal: Principal
  readonly signal: AbortSignal
  /** What an HTTP request pays with. */
  readonly payment?: Payment | undefined
}

/** Yields notifications, and returns the result. */
type Answering = AsyncGenerator<readonly string[], Slot>
type SeedMethod = (context: SeedContext, params: unknown, id: RpcId) => Answering

const SEED_VERSION = '1.0'

export const SEED_METHODS: Readonly<Record<string, SeedMethod>> = {
  initialize: (context) => at(async () => initialized(context)),
  'prompt/submit': submit,
  'chat/submit': submit,
  'tools/list': ({ host, agent }) => at(async () => ({ tools: toolsOf(agentOf(host, agent)) })),
  'tools/call': (context, params) => at(() => callTool(context, params)),
  capabilities: ({ host, agent }) => at(async () => ({ ...abilities(agentOf(host, agent)), agent: agentOf(host, agent).capabilities })),
}

/** ACP's own `initialize` names its version by a number. */
export function isSeedInitialize(params: unknown): boolean {
  return typeof (params as { protocolVersion?: unknown } | null | undefined)?.protocolVersion !== 'number'
}

// oxlint-disable-next-line require-yield
async function* at(result: () => Promise<Slot>): Answering {
  return await result()
}

function agentOf({ agents }: Host, name: string): AgentPort {
  const agent = agents.get(name)
  if (!agent) throw new UampError('agent_offline', `There is no agent "${name}" here`)
  return agent
}

function initialized({ host, agent }: SeedContext): Slot {
  const known = agentOf(host, agent)
  return { protocolVersion: SEED_VERSION, serverInfo: { name: agent, version: SEED_VERSION }, capabilities: abilities(known) }
}

function abilities({ capabilities }: AgentPort): Slot {
  return { streaming: true, tools: capabilities.tools?.supports_tools ?? false }
}

async function* submit({ host, agent, principal, signal, payment: paid }: SeedContext, params: unknown, id: RpcId): Answering {
  const { messages, payment_token: token } = parse(Submit, params)
  const payment = token ? { scheme: 'token', token } : paid
  const session = await host.gateway.open({
    transport: 'acp',
    agent,
    principal,
    config: { modalities: ['text'] },
    duplex: false,
    persist: false,
    onDetach: 'cancel',
    input: messages,
    ...(payment && { payment }),
  })
  const reader = session.read({ signal })
  let content = ''
  let failure: Error | undefined
  let over = false
  try {
    await session.send({ type: 'response.create', event_id: host.newId() })
    yield [notificationText('prompt/started', { requestId: String(id) })]
    for await (const batch of reader) {
      const frames: string[] = []
      const text = (piece: string): void => {
        content += piece
        frames.push(notificationText('prompt/progress', { content: piece, role: 'assistant' }))
      }
      batch.visit({
        text,
        event: (event) => {
          if (event.type === 'payment.required') failure ??= paymentRefusal(event)
          if (event.type === 'response.error') failure ??= toldBody(event.error)
          if (event.type === 'response.cancelled') failure ??= new UampError('cancelled', 'The prompt was cancelled')
          over ||= event.type === 'response.done' || failure !== undefined
        },
      })
      if (frames.length > 0) yield frames
      if (over) break
    }
  } finally {
    reader.close()
    await session.release()
  }
  if (failure) throw failure
  if (!over) throw new UampError('cancelled', 'The prompt was cancelled')
  return { status: 'complete', content }
}

function toolsOf({ tools, capabilities }: AgentPort): Slot[] {
  if (tools) {
    return tools
      .map(toolDefinition)
      .map(({ function: { name, description, parameters } }) => ({ name, description, inputSchema: parameters }))
  }
  return (capabilities.tools?.built_in_tools ?? []).map((name) => ({ name, inputSchema: { type: 'object' } }))
}

/** Beside any conversation, so nobody is there who could allow a call: a tool that must be allowed is not run. */
async function callTool({ host, agent, principal, signal }: SeedContext, params: unknown): Promise<Slot> {
  const { name, arguments: args } = parse(CallTool, params)
  const { tools = [] } = agentOf(host, agent)
  if (!tools.some((tool) => tool.name === name)) throw new RpcError(RPC.invalidParams, `There is no tool "${name}"`)
  const id = host.newId()
  const turn: Turn = {
    id,
    sessionId: id,
    messages: [],
    duplex: false,
    config: { modalities: ['text'] },
    principal,
    client: undefined,
    signal,
    http: fetchHttp(),
    ask: () => Promise.reject(new UampError('approval_unavailable', 'Nobody is there to be asked')),
  }
  const running = toolRunner(turn, { tools })([{ id, name, arguments: JSON.stringify(args ?? {}) }])
  for (;;) {
    const step = await running.next()
    if (!step.done) continue
    const [result] = step.value
    return { content: [{ type: 'text', text: result?.result ?? '' }], isError: result?.is_error ?? false }
  }
}
