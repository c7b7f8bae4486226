import { mayDo } from '../../core/basics/principal.ts'
import { modelPricing, toldCapabilities } from '../../core/basics/shown-price.ts'
import type { Call, Host, KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'

/** Lists agents as models, as OpenAI clients call them. */
export class Models {
  readonly #host: Host
  readonly #created: number

  constructor(host: Host) {
    this.#host = host
    this.#created = Math.floor(host.now() / 1000)
  }

  /** `GET /v1/models`: at the root all agents that the caller may use, under `/agents/{name}` only that one. */
  list(call: KnownCall): Response {
    const names = call.root ? this.#host.agents.names() : call.agent === undefined ? [] : [call.agent]
    const data = names.filter((agent) => mayDo(call.access, call.principal, { action: 'read', agent })).map((name) => this.#model(name))
    return Response.json({ object: 'list', data })
  }

  /** `GET /v1/models/{id}`. */
  get(call: KnownCall): Response {
    const id = call.params['id'] ?? ''
    const isThere = this.#host.agents.get(id) && (call.root || call.agent === id)
    if (!isThere) throw new UampError('agent_offline', `There is no agent "${id}" here`, { details: { param: 'model' } })
    this.#host.gateway.authorize(call.principal, 'read', id)
    return Response.json(this.#model(id))
  }

  #model(id: string): object {
    const agent = this.#host.agents.get(id)
    const pricing = agent && modelPricing(agent)
    return { id, object: 'model', created: this.#created, owned_by: agent?.capabilities.provider ?? 'uamp', ...(pricing && { pricing }) }
  }
}

/** `GET /capabilities`: UAMP events §9. */
export function capabilities({ agents }: Host, { agent: name }: Call): Response {
  const agent = name === undefined ? undefined : agents.get(name)
  if (!agent) throw new UampError('agent_offline', 'Say which agent: /agents/{name}/capabilities')
  return Response.json(toldCapabilities(agent))
}
