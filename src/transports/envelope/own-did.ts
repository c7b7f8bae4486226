import { envelopeError } from '../../envelope/codes.ts'
import { didDocument } from '../../envelope/did-document.ts'
import { didOfUrl, isSameDid } from '../../envelope/did.ts'
import type { SigningKey } from '../../envelope/signature.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'

type Server = Pick<Host, 'ownUrl' | 'signer' | 'agents'>

/** Who this server is to other organisations: its DID, those of its agents, and the keys that sign for them. */
export class OwnDid {
  readonly #host: Server

  constructor(host: Server) {
    this.#host = host
  }

  /** The DID of the server, or of one of its agents. Throws `5.01` where the server does not know its own address. */
  of(agent?: string): string {
    const url = this.#host.ownUrl()
    if (url === undefined)
      throw envelopeError('5.01', 'This server does not know its own URL: its operator has to set publicUrl', 'public_url')
    return didOfUrl(agent === undefined ? url : `${url}/agents/${agent}`)
  }

  /** The agent that one of these recipients is: below an agent's own path that one alone, and at the root any. */
  agentIn(to: readonly string[], { agent, root }: Pick<KnownCall, 'agent' | 'root'>): string | undefined {
    const own = this.of()
    for (const did of to) {
      if (agent !== undefined && (isSameDid(did, own) || isSameDid(did, this.of(agent)))) return agent
      const named = root ? this.#host.agents.names().find((name) => isSameDid(did, this.of(name))) : undefined
      if (named !== undefined) return named
    }
    return undefined
  }

  /** The key that signs now, in the name of this DID. */
  async key(did: string): Promise<SigningKey> {
    const key = await this.#signer().key('envelopes')
    if (key.alg === 'RS256') throw new UampError('internal', 'Envelopes cannot be signed with RS256')
    return { id: `${did}#${key.kid}`, alg: key.alg, sign: key.sign }
  }

  /** The DID document (UAMP envelope §8). The next key is in it before it signs. */
  async document(agent?: string): Promise<object> {
    const did = this.of(agent)
    const signer = this.#signer()
    // Makes the first key.
    await signer.key('envelopes')
    const { keys } = await signer.publicJwks('envelopes')
    const endpoint = `${this.#host.ownUrl()}${agent === undefined ? '' : `/agents/${agent}`}/v1/messages`
    return didDocument(
      did,
      keys.map((jwk) => ({ kid: jwk.kid, jwk })),
      [{ id: 'uamp', type: 'UAMPEnvelope', serviceEndpoint: endpoint }],
    )
  }

  #signer(): NonNullable<Server['signer']> {
    const { signer } = this.#host
    if (!signer) throw new UampError('not_supported', 'This server has no keys that sign')
    return signer
  }
}
