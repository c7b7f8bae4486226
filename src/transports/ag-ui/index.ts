import { toldCapabilities } from '../../core/basics/shown-price.ts'
import { CORE_LIMITS } from '../../core/basics/limits.ts'
import { weigh } from '../../core/basics/weight.ts'
import { HeldPieces, jsonPieces } from '../../core/edge/json-answer.ts'
import type { Call, Frame, Host, KnownCall, Streamed, Transport } from '../../core/ports/transport.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { UampError } from '../../protocol/errors.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import { RunEncoder, type Place } from './encoder.ts'
import { asItIs, SseWire, type Clock, type Wire } from './events.ts'
import { toLegacy } from './legacy.ts'
import { placeIn } from './place.ts'
import { loadProto, ProtoWire, wantsProto, type ProtoModule } from './proto.ts'
import { isLegacy, toAsked } from './request.ts'
import { planOf, Runs, type RunRecord } from './runs.ts'
import { Starter, type Started } from './start.ts'
import { stateAfter } from './state.ts'
import { findThread, historyOf, snapshotsOf, type HistoryOptions } from './thread.ts'
import { SSE_HEADERS } from '../../wire/sse.ts'
import type { AgentPort } from '../../core/ports/agent.ts'

export interface AgUiOptions {
  /** Loads the module for the binary form. Default: `@ag-ui/proto`, if it is installed. */
  readonly proto?: () => Promise<ProtoModule | undefined>
  /** How long a run can be replayed. Default: as long as a session is kept. */
  readonly runTtlMs?: number
}

/** AG-UI 1.0 and 0.0.x, for unchanged front ends. */
export function agUi({ proto = loadProto, runTtlMs = CORE_LIMITS.sessionTtlMs }: AgUiOptions = {}): Transport {
  return {
    name: 'ag-ui',
    routes: (host) => {
      const endpoint = new Endpoint(host, { proto, runTtlMs })
      return [
        { method: 'POST', path: '/ag-ui', access: 'request', body: 'text', handle: (request, call) => endpoint.run(request, call) },
        { method: 'GET', path: '/ag-ui/runs/:runId', access: 'request', action: 'read', handle: (_, call) => endpoint.replay(call) },
        { method: 'GET', path: '/ag-ui/threads/:threadId', access: 'request', action: 'read', handle: (_, call) => endpoint.thread(call) },
        { method: 'GET', path: '/ag-ui/capabilities', access: 'public', handle: (_, call) => endpoint.capabilities(call) },
      ]
    },
  }
}

class Endpoint {
  readonly #host: Host
  readonly #runs: Runs
  readonly #proto: () => Promise<ProtoModule | undefined>

  constructor(host: Host, { proto, runTtlMs }: Required<AgUiOptions>) {
    this.#host = host
    this.#runs = new Runs(host, runTtlMs)
    this.#proto = proto
  }

  /** `POST /ag-ui`. */
  async run(request: Request, call: KnownCall): Promise<Streamed> {
    const asked = await toAsked(call)
    this.#host.gateway.checkSlots(asked.extras)
    const starter = new Starter(this.#host, this.#runs, { call, asked })
    let started = await starter.start()
    let run = this.#run(started, call, !asked.detach)
    const { duplex } = started.session
    // Whoever answers an interrupt is asked by the next one: sent again, this run would answer what no longer waits.
    const isAsked = asked.resume.length > 0
    try {
      let refused = await run.preflight()
      if (refused?.type === 'payment.required' && (asked.payment || !(duplex || isAsked))) {
        // On a one-way session the payment can be answered only after the question has ended its response.
        while (!duplex && (await run.take()));
        if (asked.payment) {
          run.over = true
          run.close()
          started = await starter.pay(started, asked.payment)
          run = this.#run(started, call, !asked.detach)
          refused = duplex ? undefined : await run.preflight()
        }
      }
      if (refused?.type === 'payment.required' && !isAsked) {
        if (!duplex) await run.refuse(refused)
        throw paymentRefusal(refused, BY_HEADER)
      }
      const wire = await this.#wire(request, { legacy: asked.legacy, response: run.response }, this.#host.now)
      return this.#stream(run, started, { wire })
    } catch (thrown) {
      run.close()
      throw thrown
    }
  }

  /** `GET /ag-ui/runs/{runId}`: the whole run, or what follows `Last-Event-ID`; then new events as they come. */
  async replay(call: KnownCall): Promise<Streamed> {
    const { gateway } = this.#host
    const { params, principal, request, agent, root, signal } = call
    const known = request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after') ?? '0'
    const record = await this.#runs.find(principal, params['runId'] ?? '')
    const turn = record && (root || record.agent === agent) ? await gateway.response(record.response, principal) : undefined
    const session = turn && (await gateway.attach(turn.session, principal, 'read'))
    if (!record || !turn || !session) throw new UampError('not_found', `There is no run "${params['runId']}"`)
    const hold = gateway.hold(principal, 0)
    const snapshots = await this.#joined(record, { principal, hold }).catch((thrown: unknown) => {
      hold.close()
      session.leave()
      throw thrown
    })
    const reader = session.read({ after: record.after, extensions: 'all', signal })
    const started = { session, reader, plan: planOf(record, turn), snapshots, fresh: false, hold }
    const run = this.#run(started, call, false)
    try {
      const place = await placeIn(known, started.plan, { session, after: record.after })
      return this.#stream(run, started, { wire: await this.#wire(request, record), known: place })
    } catch (thrown) {
      run.close()
      throw thrown
    }
  }

  /** `GET /ag-ui/threads/{threadId}`: the conversation and the state of a thread, as a run in which nothing is done. */
  async thread(call: KnownCall): Promise<Streamed> {
    const { gateway, newId } = this.#host
    const { params, principal, request, agent } = call
    const threadId = params['threadId'] ?? ''
    const session = agent === undefined ? undefined : await findThread(gateway, call, { agent, threadId, action: 'read' })
    if (!session) throw new UampError('not_found', `There is no thread "${threadId}"`)
    const hold = gateway.hold(principal, 0)
    try {
      const head = session.lastResponse === null ? undefined : await gateway.response(session.lastResponse, principal)
      const state = head && (await stateAfter(session, head))
      const [messages] = snapshotsOf(head ? await historyOf(gateway, head.id, { principal, hold }) : [], [])
      const run = { threadId, runId: newId() }
      const shape = isLegacy(new URL(request.url).searchParams.get('protocolVersion') ?? undefined) ? toLegacy : asItIs
      const told = [
        { type: 'RUN_STARTED', ...run, protocolVersion: '1.0', metadata: { uamp: { session_id: session.id } } },
        ...(state === undefined ? [] : [{ type: 'STATE_SNAPSHOT', snapshot: state }]),
        { type: 'MESSAGES_SNAPSHOT', messages },
        { type: 'RUN_FINISHED', ...run, outcome: { type: 'success' } },
      ]
      hold.grow(weigh(told))
      return { status: 200, headers: SSE_HEADERS, frames: new HeldPieces(linesOf(told.map(shape)), hold) }
    } catch (thrown) {
      hold.close()
      throw thrown
    } finally {
      session.leave()
    }
  }

  /** `GET /ag-ui/capabilities`. */
  async capabilities({ agent }: Call): Promise<Response> {
    const found = agent === undefined ? undefined : this.#host.agents.get(agent)
    if (!found) throw new UampError('agent_offline', 'Say which agent: its address is /agents/{name}/ag-ui/capabilities')
    return Response.json(capabilitiesOf(found, { httpBinary: (await this.#proto()) !== undefined }))
  }

  /** What a client was shown that joined a conversation. */
  async #joined({ joined }: RunRecord, options: HistoryOptions): Promise<Started['snapshots']> {
    return joined ? snapshotsOf(await historyOf(this.#host.gateway, joined.from, options), joined.messages) : []
  }

  #run({ session, reader, plan, fresh, hold }: Started, call: KnownCall, cancels: boolean): ResponseRun {
    const run = new ResponseRun(this.#host, { session, reader, response: plan.response, cancels, fresh, hold })
    run.stopWith(call)
    return run
  }

  #stream(run: ResponseRun, { plan, snapshots }: Started, { wire, known }: { readonly wire: Wire; readonly known?: Place }): Streamed {
    const { headers, heartbeat } = wire
    const encoder = new RunEncoder(plan, { snapshots, ...(known && { known }) })
    const frames = run.frames((batch) => {
      const frame = wire.frame((out) => encoder.read(batch, out))
      // On a duplex session a question ends the run but not its response, which the encoder notices only as it writes.
      const shown = plan.duplex ? written(frame) : frame
      run.over ||= encoder.ended
      return shown
    })
    return {
      status: 200,
      headers,
      frames,
      failure: ({ code, message }) => wire.frame((out) => out.event({ type: 'RUN_ERROR', message, code })),
      ...(heartbeat !== undefined && { heartbeat }),
    }
  }

  async #wire(request: Request, { legacy, response }: Pick<RunRecord, 'legacy' | 'response'>, now?: Clock): Promise<Wire> {
    const shape = legacy ? toLegacy : asItIs
    const module = wantsProto(request.headers.get('accept')) ? await this.#proto() : undefined
    return module ? new ProtoWire(module, shape, now) : new SseWire(shape, response, now)
  }
}

/** Events as server-sent ones, in pieces: a conversation may be large. */
function* linesOf(events: readonly unknown[]): Generator<string, void> {
  for (const event of events) {
    let before = 'data: '
    for (const piece of jsonPieces(event)) {
      yield before + piece
      before = ''
    }
    yield '\n\n'
  }
}

function written(frame: Frame): Frame {
  if (typeof frame === 'string' || frame instanceof Uint8Array) return frame
  let text = ''
  frame.eachText((piece) => (text += piece))
  return text
}

/** `AgentCapabilities` of AG-UI 1.0. */
function capabilitiesOf(agent: AgentPort, { httpBinary }: { readonly httpBinary: boolean }): object {
  const { name, description } = agent
  const capabilities = toldCapabilities(agent)
  const { provider, modalities, tools, supports_thinking, file } = capabilities
  const has = (kind: string): boolean => modalities.includes(kind)
  return {
    identity: { name, type: 'uamp', provider, ...(description !== undefined && { description }) },
    transport: { streaming: true, websocket: false, httpBinary, pushNotifications: false, resumable: true },
    tools: { supported: tools?.supports_tools ?? true, parallelCalls: tools?.supports_parallel_tools ?? true, clientProvided: true },
    state: { snapshots: true, deltas: true, memory: true, persistentState: true },
    reasoning: { supported: supports_thinking, streaming: supports_thinking, encrypted: supports_thinking },
    multimodal: {
      input: { image: has('image'), audio: has('audio'), video: has('video'), pdf: file?.supports_pdf ?? has('file'), file: has('file') },
      output: { image: has('image'), audio: has('audio') },
    },
    humanInTheLoop: { supported: true, approvals: true, interrupts: true, approveWithEdits: false },
    custom: { uamp: { protocolVersions: ['1.0', '0.0'], capabilities } },
  }
}
