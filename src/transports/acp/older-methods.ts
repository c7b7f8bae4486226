/** The methods of UAMP transports, ACP, which are older than those of ACP 1: one request, and notifications while it is answered. */
import { toldCapabilities } from '../../core/basics/shown-price.ts'
import { ofResponse } from '../../core/edge/report-error.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import { ResponseFold } from '../../core/reading/response-fold.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { SessionSecrets } from '../../core/secrets/session-secrets.ts'
import { toolDefinition } from '../../core/tools/tool.ts'
import { toolRunner } from '../../core/tools/tool-loop.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { toBlock, toItem, type ContentBlock } from '../../wire/acp/blocks.ts'
import { notificationText, parseParams, RPC, RpcError, type RpcId } from '../../wire/json-rpc.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import { Speech } from '../../wire/speech.ts'
import type { ConnectionOptions } from './connection.ts'
import { toldBody } from './errors.ts'
import { CallTool, Submit } from './schema.ts'

export interface OlderContext extends Pick<ConnectionOptions, 'host' | 'caller' | 'version'> {
  readonly agent: AgentPort
  readonly signal: AbortSignal
  /** Sends notifications. Resolves when more may be sent. */
  readonly notify: (frames: readonly string[]) => Promise<void>
}

type OlderMethod = (context: OlderContext, params: unknown, id: RpcId) => Slot | Promise<Slot>

const OLDER_VERSION = '1.0'

export const OLDER_METHODS: ReadonlyMap<string, OlderMethod> = new Map<string, OlderMethod>([
  [
    'initialize',
    ({ agent, version }) => ({
      protocolVersion: OLDER_VERSION,
      serverInfo: { name: agent.name, version },
      capabilities: abilities(agent),
    }),
  ],
  ['prompt/submit', submit],
  ['chat/submit', submit],
  ['tools/list', ({ agent }) => ({ tools: toolsOf(agent) })],
  ['tools/call', callTool],
  ['capabilities', ({ agent }) => ({ ...abilities(agent), agent: toldCapabilities(agent) })],
])

/** The calls of these methods that a connection is answering. Each has its own signal, as a connection may have hundreds at once. */
export class OlderCalls {
  readonly #running = new Set<AbortController>()

  async run(call: (signal: AbortSignal) => Slot | Promise<Slot>): Promise<Slot> {
    const running = new AbortController()
    this.#running.add(running)
    try {
      return await call(running.signal)
    } finally {
      this.#running.delete(running)
    }
  }

  close(reason: Error): void {
    for (const running of this.#running) running.abort(reason)
  }
}

/** The `initialize` of ACP 1 has a number as its version. */
export function isOlderInitialize(params: unknown): boolean {
  return typeof (params as { protocolVersion?: unknown } | null | undefined)?.protocolVersion !== 'number'
}

function abilities({ capabilities }: AgentPort): Slot {
  return { streaming: true, tools: capabilities.tools?.supports_tools ?? false }
}

async function submit({ host, caller, agent, signal, notify }: OlderContext, params: unknown, id: RpcId): Promise<Slot> {
  const { messages, payment_token: token } = parseParams(Submit, params)
  const payment = token ? { scheme: 'token', token } : caller.payment
  const session = await host.gateway.open({
    transport: 'acp',
    agent: agent.name,
    principal: caller.principal,
    trace: caller.trace,
    config: { modalities: ['text'] },
    duplex: false,
    persist: false,
    onDetach: 'cancel',
    input: messages.map(({ role, content }) => ({
      role,
      ...(typeof content === 'string' ? { content } : { content_items: content.map(toItem) }),
    })),
    ...(payment && { payment }),
  })
  const reader = session.read({ signal })
  const sent = session.send({ type: 'response.create', event_id: host.newId() })
  const run = new ResponseRun(host, { session, reader, response: session.lastResponse ?? '' })
  const answer = new SubmitAnswer(run.response)
  try {
    await sent
    await notify([notificationText('prompt/started', { requestId: String(id) })])
    for (let batch = await run.take(); batch && !answer.ended; batch = await run.take()) {
      answer.take(batch)
      const frames = answer.frames.splice(0)
      if (frames.length > 0) await notify(frames)
    }
  } finally {
    run.close()
  }
  if (answer.failure) throw answer.failure
  if (!answer.ended) throw new UampError('cancelled', 'The prompt was cancelled')
  return { status: 'complete', content: answer.content, ...(answer.parts.length > 0 && { parts: answer.parts }) }
}

/** The words of an answer, and its media as `parts`. These methods have no field for anything else. */
class SubmitAnswer extends ResponseFold {
  content = ''
  readonly parts: ContentBlock[] = []
  readonly frames: string[] = []
  failure: Error | undefined
  readonly #speech = new Speech()

  text(text: string): void {
    if (!this.running || text === '') return
    this.content += text
    this.frames.push(notificationText('prompt/progress', { content: text, role: 'assistant' }))
  }

  protected get silent(): boolean {
    return this.content === '' && this.parts.length === 0
  }

  protected begin(): void {}

  protected item(item: Delta): void {
    if (item.type === 'text') this.text(item.text)
    // A piece of audio has no content id; the whole has one.
    if (item.type === 'audio' && item.content_id !== undefined) this.text(this.#speech.whole(item.transcript).words)
    if (item.type === 'image' || item.type === 'video' || item.type === 'file' || (item.type === 'audio' && item.content_id !== undefined))
      this.#media(item)
  }

  #media(item: ContentItem): void {
    const part = toBlock(item)
    if (!part) return
    this.parts.push(part)
    this.frames.push(notificationText('prompt/progress', { content: '', role: 'assistant', parts: [part] }))
  }

  protected tell(event: ServerEvent): void {
    if (event.type === 'response.delta') this.item(event.delta)
    if (event.type === 'transcript.delta') this.text(this.#speech.say(event.transcript))
    if (event.type === 'transcript.done') this.text(this.#speech.complete(event.transcript))
    if (event.type === 'payment.required') this.failure = paymentRefusal(event, BY_HEADER)
    if (event.type === 'response.error') this.failure = ofResponse(toldBody(event.error))
    if (event.type === 'response.cancelled') this.failure = new UampError('cancelled', 'The prompt was cancelled')
    this.ended ||= this.failure !== undefined
  }
}

function toolsOf({ tools, capabilities }: AgentPort): Slot[] {
  if (!tools) return (capabilities.tools?.built_in_tools ?? []).map((name) => ({ name, inputSchema: { type: 'object' } }))
  return tools.map((tool) => {
    const { name, description, parameters } = toolDefinition(tool).function
    return { name, description, inputSchema: parameters }
  })
}

/** Runs a tool outside any conversation. Nobody can be asked to allow it, so a tool that needs approval is not run. */
async function callTool({ host, caller, agent, signal }: OlderContext, params: unknown): Promise<Slot> {
  const { principal } = caller
  host.gateway.authorize(principal, 'tool', agent.name)
  const { name, arguments: args } = parseParams(CallTool, params)
  const tool = agent.tools?.find((each) => each.name === name)
  if (!tool) throw new RpcError(RPC.invalidParams, `There is no tool "${name}"`)
  // The author of a tool relies on the agent's judgement, unless they mark the tool as direct.
  if (!tool.direct) throw new UampError('forbidden', `"${name}" cannot be called directly: ask the agent to use it`)
  const id = host.newId()
  const secrets = new SessionSecrets(host)
  const turn: Turn = {
    id,
    sessionId: id,
    messages: [],
    duplex: false,
    config: { modalities: ['text'] },
    principal,
    client: undefined,
    signal,
    http: { ...secrets.http, trace: caller.trace },
    trace: caller.trace,
    redact: (text) => secrets.text(text),
    store: host.gateway.storeOf(agent.name, principal),
    ask: () => Promise.reject(new UampError('approval_unavailable', 'There is nobody to ask')),
    charge: () => Promise.reject(new UampError('payment_required', 'This call cannot be paid for: have the agent make it')),
    handOn: () => Promise.reject(new UampError('payment_required', 'There is nobody here who pays')),
  }
  const running = toolRunner(turn, { tools: [tool] })([{ id, name, arguments: JSON.stringify(args ?? {}) }])
  let step = await running.next()
  while (!step.done) step = await running.next()
  const [result] = step.value
  return { content: [{ type: 'text', text: result?.result ?? '' }], isError: result?.is_error ?? false }
}
