import type { Host, KnownCall } from '../../core/ports/transport.ts'
import type { StoredResponse } from '../../core/ports/session.ts'
import { bodyOf } from '../../envelope/body.ts'
import { envelopeError } from '../../envelope/codes.ts'
import type { Body, Envelope, Intent } from '../../envelope/schema.ts'
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { problemOf } from './errors.ts'
import type { MessageRecord, MessageRecords } from './records.ts'
import type { Replies } from './replies.ts'
import type { Streams } from './streams.ts'

type Reading = Pick<KnownCall, 'principal' | 'agent' | 'root' | 'signal'>

interface ClosingOptions {
  readonly host: Pick<Host, 'gateway'>
  readonly replies: Replies
  readonly records: MessageRecords
  readonly streams: Streams
}

/** What became of a message: it runs, or the signed message that closes it. */
export type Outcome = { readonly state: 'IN_PROGRESS'; readonly stream: string } | { readonly envelope: Envelope }

/** Closes exchanges by a signed message, which has the hash of the stream: the frames themselves are not signed. */
export class Closings {
  readonly #options: ClosingOptions

  constructor(options: ClosingOptions) {
    this.#options = options
  }

  /** `GET /v1/messages/{id}`, for whoever sent it. */
  async of(id: string, call: Reading): Promise<Outcome> {
    const { host, records } = this.#options
    const { principal } = call
    const key = records.keyOf(principal, id)
    const record = await records.get(key)
    const response = record?.response === undefined ? undefined : await host.gateway.response(record.response, principal)
    if (!record || !response || record.stream === undefined)
      throw envelopeError('4.04', 'There is no message of that id with an answer', 'id')
    if (record.closing) return { envelope: record.closing }
    if (response.status === 'open') return { state: 'IN_PROGRESS', stream: record.stream }
    const envelope = await this.#closing(record, response, call)
    await records.write(records.operation(key, { ...record, closing: envelope }, { tenant: principal.tenant, isNew: false }))
    return { envelope }
  }

  async #closing({ id, hash, from, stream = '', agent }: MessageRecord, response: StoredResponse, call: Reading): Promise<Envelope> {
    const { replies, streams } = this.#options
    const stream_sha256 = await streams.hashOf(await streams.open(stream, call), call.signal)
    const ext = { uamp: { stream_sha256, ...(response.usage && { usage: response.usage }) } }
    return replies.to({ envelope: { id, from }, hash, agent }, { intent: INTENTS[response.status], stream, body: bodyIn(response), ext })
  }
}

const INTENTS = {
  open: 'progress',
  waiting: 'propose',
  completed: 'confirm',
  cancelled: 'cancel',
  failed: 'error',
} satisfies Record<StoredResponse['status'], Intent>

function bodyIn({ status, output, error }: StoredResponse): Body {
  if (status === 'failed' && error) {
    const { code, message, details } = error
    return bodyOf(
      'application/problem+json',
      JSON.stringify(problemOf(new UampError(code as ErrorCode, message, { ...(details && { details }) }))),
    )
  }
  const said = output.filter(({ type }) => type !== 'thinking')
  if (said.every(({ type }) => type === 'text')) {
    return bodyOf('text/plain', said.map((item) => (item.type === 'text' ? item.text : '')).join(''))
  }
  return bodyOf('application/json', JSON.stringify(said))
}
