import type { Host, KnownCall } from '../../core/ports/transport.ts'
import type { StoredResponse } from '../../core/ports/session.ts'
import { bodyOf } from '../../envelope/body.ts'
import { envelopeError } from '../../envelope/codes.ts'
import type { Body, Envelope, Intent } from '../../envelope/schema.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { problemOf } from './errors.ts'
import type { FoundRecord, MessageRecords } from './records.ts'
import type { Replies } from './replies.ts'
import type { EnvelopeSettings } from './settings.ts'
import type { Streams } from './streams.ts'

type Reading = Pick<KnownCall, 'principal' | 'agent' | 'root'>

interface ClosingOptions {
  readonly host: Pick<Host, 'gateway'>
  readonly replies: Replies
  readonly records: MessageRecords
  readonly streams: Streams
  readonly settings: Pick<EnvelopeSettings, 'maxBodyKb'>
}

/** What became of a message: it runs, or the signed message that closes it. */
export type Outcome = { readonly state: 'IN_PROGRESS'; readonly stream: string } | { readonly envelope: Envelope }

/** Closes exchanges by a signed message, which has the hash of the stream: the frames themselves are not signed. */
export class Closings {
  readonly #options: ClosingOptions
  /** Messages that are being signed, by the keys of their records: whoever else asks gets the same one. */
  readonly #making = new Map<string, Promise<Envelope>>()

  constructor(options: ClosingOptions) {
    this.#options = options
  }

  /** `GET /v1/messages/{id}`, for whoever sent it. */
  async of(id: string, call: Reading): Promise<Outcome> {
    const { host, records } = this.#options
    const { principal, agent, root } = call
    const key = records.keyOf(principal, id)
    const found = await records.find(key)
    const { response: name, stream, closing } = found?.record ?? {}
    const isHere = root || found?.record.agent === agent
    const response = isHere && name !== undefined ? await host.gateway.response(name, principal) : undefined
    if (!found || !response || stream === undefined) throw envelopeError('4.04', 'There is no message of that id with an answer', 'id')
    if (closing) return { envelope: closing }
    if (response.status === 'open') return { state: 'IN_PROGRESS', stream }
    const making = this.#making.get(key) ?? this.#make(found, response, call).finally(() => this.#making.delete(key))
    this.#making.set(key, making)
    return { envelope: await making }
  }

  /** Does not end with the caller who came first: others may wait for the same message. */
  async #make(found: FoundRecord, response: StoredResponse, call: Reading): Promise<Envelope> {
    const { records, replies, streams, settings } = this.#options
    const { id, from, hash, agent, stream = '' } = found.record
    const stream_sha256 = await streams.hashOf(await streams.find(stream, call))
    const body = bodyIn(response, settings.maxBodyKb * 1024)
    const uamp = { stream_sha256, ...(response.usage && { usage: response.usage }), ...(!body && { body: 'stream' }) }
    const envelope = await replies.to(
      { envelope: { id, from }, hash, agent },
      { intent: INTENTS[response.status], stream, body, ext: { uamp } },
    )
    await records.close(found, envelope, call.principal)
    return envelope
  }
}

const INTENTS = {
  open: 'progress',
  waiting: 'propose',
  completed: 'confirm',
  cancelled: 'cancel',
  failed: 'error',
} satisfies Record<StoredResponse['status'], Intent>

/** Undefined: the answer is larger than bodies are taken. Its stream has it, whose hash is signed. */
function bodyIn({ status, output, error }: StoredResponse, maxBytes: number): Body | undefined {
  if (status === 'failed' && error) {
    const { code, message, details } = error
    return bodyOf(
      'application/problem+json',
      JSON.stringify(problemOf(new UampError(code as ErrorCode, message, { ...(details && { details }) }))),
    )
  }
  const said = output.filter(({ type }) => type !== 'thinking')
  const isText = said.every(({ type }) => type === 'text')
  const content = isText ? said.map((item) => (item.type === 'text' ? item.text : '')).join('') : JSON.stringify(said)
  if (content.length > maxBytes || new TextEncoder().encode(content).length > maxBytes) return undefined
  return bodyOf(isText ? 'text/plain' : 'application/json', content)
}
