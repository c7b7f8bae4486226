import { defineAgent } from '../../core/agent-kit/define-agent.ts'
import type { AgentPort, ServerFacts, Turn } from '../../core/ports/agent.ts'
import type { Identity } from '../../core/ports/identity.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { didOfUrl } from '../../envelope/did.ts'
import type { SigningKey } from '../../envelope/signature.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { itemsOf, type Message } from '../../protocol/message.ts'
import { outboundAuth, type OutboundAuth } from '../../upstream/outbound-auth.ts'
import { Payer } from '../../upstream/payer.ts'
import { Places } from '../../upstream/places.ts'
import { transcript } from '../../upstream/transcript.ts'
import type { RemoteOptions } from '../../upstream/upstream.ts'
import { Exchange } from './exchange.ts'
import { Listener } from './listener.ts'
import { Peer } from './peer.ts'

export interface RemoteEnvelopeOptions extends RemoteOptions {
  /**
   * The other server, or one agent of it: `did:web:partner.example`, or its URL. Each stands for the other. Plain `http` is for servers on
   * this machine.
   */
  readonly url: string
}

/**
 * An agent of another organisation, as an agent here. Messages to it are signed in the name of the agent here, with the key of this server,
 * which publishes it if it takes envelopes itself. The answer is taken if the message that closes it is signed by the other side, and has
 * the hash of what came.
 */
export function remoteEnvelope(options: RemoteEnvelopeOptions): AgentPort {
  const { name, description, token, headers, price } = options
  const url = urlOf(options)
  const auth = outboundAuth({ ...options, url })
  const remote = new Remote({ ...options, url }, auth)
  const agent = defineAgent(name, (turn) => remote.run(turn), {
    description,
    capabilities: { modalities: ['text'] },
    secrets: secretsOf({ values: [token, ...(auth?.secrets ?? [])], headers, urls: [url] }),
    ...(price && { price }),
  })
  return { ...agent, prepare: (server) => remote.prepare(server) }
}

/** The address of a DID (did:web §2.5), without what finds the document. */
function urlOf({ name, url }: RemoteEnvelopeOptions): string {
  const [, host, path = ''] = /^did:web:([^:]+)((?::[^:]+)*)$/.exec(url) ?? []
  const address = host === undefined ? url : `https://${host.replace('%3A', ':')}${path.replaceAll(':', '/')}`
  if (URL.canParse(address)) return address.replace(/\/+$/, '')
  throw new UampError('invalid_request', `"${name}" is nowhere: write its url as in "did:web:partner.example" or "https://partner.example"`)
}

class Remote {
  readonly #options: RemoteEnvelopeOptions
  readonly #auth: OutboundAuth | undefined
  readonly #peer: Peer
  /** The last message of each conversation. */
  readonly #places = new Places<string>()
  #identity: Identity | undefined

  constructor(options: RemoteEnvelopeOptions, auth: OutboundAuth | undefined) {
    this.#options = options
    this.#auth = auth
    this.#peer = new Peer(options)
  }

  prepare(server: ServerFacts): void {
    this.#identity = server.identity ?? this.#identity
    this.#auth?.prepare(server)
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const { name, url, token, headers = {} } = this.#options
    const http = this.#auth?.http(turn) ?? turn.http
    const exchange = new Exchange({ name, url, token, headers, http, to: didOfUrl(url), key: await this.#key() })
    const payer = new Payer(turn, this.#options)
    const listener = new Listener(turn, { name, exchange, payer })
    const { before, now, place } = await this.#places.find(turn)
    const told = place === undefined ? transcript(before) : ''
    const content = [told, ...now.map(textIn)].filter((each) => each !== '').join('\n\n')
    try {
      const asked = await exchange.ask(content, { replyTo: place, signal: turn.signal })
      for await (const draft of listener.listen(asked)) {
        const told = payer.told(draft)
        if (told) yield told
      }
      await this.#peer.check(await exchange.closing(asked, turn.signal), { ...asked, hash: listener.hash, http, signal: turn.signal })
      await this.#places.keep(turn, { place: asked.id, said: listener.text })
      const ending = payer.told(listener.ending)
      if (ending) yield ending
    } finally {
      await payer.end()
    }
  }

  async #key(): Promise<SigningKey> {
    const { name } = this.#options
    const url = this.#identity?.url()
    if (!this.#identity || url === undefined) {
      throw new UampError('not_supported', `"${name}" signs in the name of a server that knows its own URL: set \`publicUrl\``)
    }
    const { kid, alg, sign } = await this.#identity.envelopeKey()
    if (alg === 'RS256') throw new UampError('internal', 'Envelopes cannot be signed with RS256')
    return { id: `${didOfUrl(`${url}/agents/${name}`)}#${kid}`, alg, sign }
  }
}

/** Bodies are text: media has no place in them yet. */
function textIn(message: Message): string {
  return itemsOf(message)
    .flatMap((item) => (item.type === 'text' ? [item.text] : []))
    .join('\n')
}
