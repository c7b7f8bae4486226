import type { Call, Host } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import type { Manifest } from '../../envelope/schema.ts'
import { signDocument, type DocumentType } from '../../envelope/signed-document.ts'
import { hashJson } from '../../protocol/canonical-json.ts'
import { BODY_TYPES } from './inputs.ts'
import { SERVED_INTENTS } from './inbox.ts'
import type { OwnDid } from './own-did.ts'
import type { EnvelopeSettings } from './settings.ts'

/** Caches keep a document for five minutes. A key is published for longer than that before it signs. */
const CACHE = 'public, max-age=300'

interface DiscoveryOptions {
  readonly host: Pick<Host, 'agents' | 'ownUrl' | 'now'>
  readonly own: OwnDid
  readonly anchors: readonly string[]
  readonly settings: Pick<EnvelopeSettings, 'maxBodyKb'>
}

/** What others read before they send a message (UAMP envelope §8): our keys, and what we take. */
export class Discovery {
  readonly #options: DiscoveryOptions

  constructor(options: DiscoveryOptions) {
    this.#options = options
  }

  /** `GET /.well-known/did.json`, and `/agents/{name}/did.json`. */
  async did({ agent, root }: Pick<Call, 'agent' | 'root'>): Promise<Response> {
    const document = await this.#options.own.document(root ? undefined : agent)
    return new Response(JSON.stringify(document), { headers: { 'content-type': 'application/did+json', 'cache-control': CACHE } })
  }

  /** `GET /.well-known/agent-manifest.json` */
  async manifest({ headers }: Request, { agent, root }: Pick<Call, 'agent' | 'root'>): Promise<Response> {
    if (agent === undefined)
      throw envelopeError('4.04', 'Say which agent: its manifest is at /agents/{name}/.well-known/agent-manifest.json')
    return this.#signed(this.#manifestOf(agent), { typ: 'manifest+jws', agent: root ? undefined : agent, accept: headers.get('accept') })
  }

  /** `GET /.well-known/agent-hub.json`: every agent of this server. */
  async hub({ headers }: Request): Promise<Response> {
    const { host, own, anchors } = this.#options
    // First, because it throws where the server has no address: promises that nobody awaits would end the process.
    const did = own.of()
    const manifests = host.agents.names().map(async (name) => ({
      did: own.of(name),
      url: `${host.ownUrl()}/agents/${name}/.well-known/agent-manifest.json`,
      sha256: await hashJson(this.#manifestOf(name)),
    }))
    const hub = {
      hub: did,
      updated: new Date(host.now()).toISOString(),
      manifests: await Promise.all(manifests),
      trust_anchors: { dids: [did, ...anchors] },
    }
    return this.#signed(hub, { typ: 'hub+jws', agent: undefined, accept: headers.get('accept') })
  }

  #manifestOf(agent: string): Manifest {
    const { host, settings } = this.#options
    return {
      agent: 'uamp/1.0',
      description: host.agents.get(agent)?.description ?? agent,
      intents: [...SERVED_INTENTS],
      body_types: [...BODY_TYPES],
      auth: ['oauth2'],
      limits: { max_body_kb: settings.maxBodyKb },
    }
  }

  async #signed(
    document: object,
    { typ, agent, accept }: { readonly typ: DocumentType; readonly agent: string | undefined; readonly accept: string | null },
  ): Promise<Response> {
    const headers = { 'cache-control': CACHE, vary: 'accept' }
    // For people: a program has to see the signature.
    if (accept !== null && /^application\/json\b/i.test(accept)) return Response.json(document, { headers })
    const { own } = this.#options
    const jws = await signDocument(document, typ, await own.key(own.of(agent)))
    if (accept === null || !/^application\/jose\+json\b/i.test(accept)) {
      return new Response(jws, { headers: { ...headers, 'content-type': `application/${typ}` } })
    }
    const [head, payload, signature] = jws.split('.')
    return Response.json({ protected: head, payload, signature }, { headers: { ...headers, 'content-type': 'application/jose+json' } })
  }
}
