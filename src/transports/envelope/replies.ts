import type { Host } from '../../core/ports/transport.ts'
import { bodyOf } from '../../envelope/body.ts'
import type { Body, Envelope, Intent } from '../../envelope/schema.ts'
import { signEnvelope } from '../../envelope/signature.ts'
import type { Slot } from '../../protocol/json.ts'
import type { OwnDid } from './own-did.ts'

/** What a reply is to. */
export interface Replied {
  readonly envelope: Pick<Envelope, 'id' | 'from'>
  readonly hash: string
  readonly agent: string
}

export interface Reply {
  readonly intent: Intent
  readonly stream?: string | undefined
  readonly body?: Body | undefined
  readonly ext?: Slot
}

/** Signs messages in the name of the agents here. */
export class Replies {
  readonly #options: { readonly host: Pick<Host, 'now'>; readonly own: OwnDid }

  constructor(options: { readonly host: Pick<Host, 'now'>; readonly own: OwnDid }) {
    this.#options = options
  }

  async to({ envelope: { id, from }, hash, agent }: Replied, { intent, stream, body, ext }: Reply): Promise<Envelope> {
    const { host, own } = this.#options
    const did = own.of(agent)
    const unsigned = {
      id: `urn:uuid:${crypto.randomUUID()}`,
      ts: new Date(host.now()).toISOString(),
      from: did,
      to: [from],
      intent,
      reply_to: id,
      context: [{ id, hash: `sha256:${hash}` }],
      ...(stream !== undefined && { stream_id: stream }),
      body: body ?? bodyOf('text/plain', ''),
      ...(ext && { ext }),
    }
    return signEnvelope(unsigned, await own.key(did))
  }
}
