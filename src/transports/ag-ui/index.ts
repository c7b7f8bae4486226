import { CORE_LIMITS } from '../../core/limits.ts'
import type { Call, Host, KnownCall, Streamed, Transport } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { capabilitiesOf } from './capabilities.ts'
import type { Place } from './encoder.ts'
import { asItIs, SseWire, type Wire } from './events.ts'
import { toLegacy } from './legacy.ts'
import { placeIn } from './place.ts'
import { loadProto, ProtoWire, wantsProto, type ProtoModule } from './proto.ts'
import { toAsked } from './request.ts'
import { Run } from './run.ts'
import { planOf, Runs, type RunRecord } from './runs.ts'
import { Starter } from './start.ts'
import { historyOf, snapshotsOf } from './thread.ts'

export interface AgUiOptions {
  /** Where the binary form comes from. Default: `@ag-ui/proto`, where it is installed. */
  readonly proto?: () => Promise<ProtoModule | undefined>
  /** How long a run can be told again. Default: as long as a session is kept. */
  readonly runTtlMs?: number
}

/** AG-UI 1.0 and 0.0.x, for unchanged front ends. */
export function agUi({ proto = loadProto, runTtlMs = CORE_LIMITS.sessionTtlMs }: AgUiOptions = {}): Transport {
  return {
    name: 'ag-ui',
    routes: (host) => {
      const endpoint = new Endpoint(host, { proto, runTtlMs })
      return [
        { method: 'POST', path: '/ag-ui', access: 'request', handle: (request, call) => endpoint.run(request, call) },
        { method: 'GET', path: '/ag-ui/runs/:runId', access: 'request', handle: (_, call) => endpoint.replay(call) },
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
    const asked = await toAsked(request)
    this.#host.gateway.checkSlots(asked.extras)
    const starter = new Starter(this.#host, this.#runs, { call, asked })
    const leaving = { cancels: !asked.detach, signal: call.signal }
    let run = new Run(this.#host, await starter.start(), leaving)
    const { duplex } = run.started.session
    try {
      let unpaid = await run.begin()
      if (unpaid && (asked.payment || !duplex)) await run.asked()
      if (unpaid && asked.payment) {
        run = new Run(this.#host, await starter.pay(run.started, asked.payment), leaving)
        unpaid = duplex ? undefined : await run.begin()
      }
      // Nobody was told of a thread that was refused for want of money.
      if (unpaid && run.started.fresh) await run.started.session.end('payment_required')
      if (unpaid) throw paymentRefusal(unpaid)
      return this.#stream(run, await this.#wire(request, { legacy: asked.legacy, response: run.started.plan.response }))
    } catch (thrown) {
      run.close()
      throw thrown
    }
  }

  /** `GET /ag-ui/runs/{runId}`: the whole of it, or what follows `Last-Event-ID`, and then what comes. */
  async replay(call: KnownCall): Promise<Streamed> {
    const { gateway } = this.#host
    const { params, principal, request, agent, root, signal } = call
    const known = request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after') ?? '0'
    const record = await this.#runs.find(principal, params['runId'] ?? '')
    const turn = record && (root || record.agent === agent) ? await gateway.turn(record.response, principal) : undefined
    const session = turn && (await gateway.attach(turn.session, principal))
    if (!record || !turn || !session) throw new UampError('not_found', `There is no run "${params['runId']}"`)
    const reader = session.read({ after: record.after, extensions: 'all', signal })
    const { joined } = record
    const snapshots = joined ? snapshotsOf(await historyOf(gateway, joined.from, principal), joined.messages) : []
    const started = { session, reader, plan: planOf(record, turn), snapshots, fresh: false }
    const run = new Run(this.#host, started, { cancels: false, signal })
    try {
      const place = await placeIn(known, started.plan, { session, after: record.after })
      return this.#stream(run, await this.#wire(request, record), place)
    } catch (thrown) {
      run.close()
      throw thrown
    }
  }

  /** `GET /ag-ui/capabilities`. */
  async capabilities({ agent }: Call): Promise<Response> {
    const found = agent === undefined ? undefined : this.#host.agents.get(agent)
    if (!found) throw new UampError('agent_offline', 'Say which agent: its address is /agents/{name}/ag-ui/capabilities')
    return Response.json(capabilitiesOf(found, { httpBinary: (await this.#proto()) !== undefined }))
  }

  #stream(run: Run, wire: Wire, known?: Place): Streamed {
    const { headers, heartbeat } = wire
    return {
      status: 200,
      headers,
      frames: run.frames(wire, known && { known }),
      failure: ({ code, message }) => wire.frame((out) => out.event({ type: 'RUN_ERROR', message, code })),
      ...(heartbeat !== undefined && { heartbeat }),
    }
  }

  async #wire(request: Request, { legacy, response }: Pick<RunRecord, 'legacy' | 'response'>): Promise<Wire> {
    const shape = legacy ? toLegacy : asItIs
    const module = wantsProto(request.headers.get('accept')) ? await this.#proto() : undefined
    return module ? new ProtoWire(module, shape) : new SseWire(shape, response)
  }
}
