import { weigh } from '../../core/basics/weight.ts'
import { jsonAnswer } from '../../core/edge/json-answer.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { Hold } from '../../core/ports/session.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, recordsIn } from '../../protocol/json.ts'
import { openAiFailure } from '../../wire/openai/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { toAsked, type Asked } from './request.ts'
import { CreateRequest, type InputItem } from './schema.ts'
import { previousOf, start } from './start.ts'
import { contextOf, withReferences } from './stored-items.ts'
import { compacted } from './summary.ts'
import { whole } from './whole.ts'

const ASK =
  'Summarize our conversation so far, so that you can go on from the summary alone: what I want, what was decided and found out, ' +
  'what is still to be done. Answer with the summary and nothing else.'

/** `POST /responses/compact`: a shorter conversation to go on from: what the user said, and a summary by the agent of the rest. */
export async function compact(host: Host, call: KnownCall): Promise<Response | Streamed> {
  const text = await call.text()
  const { tools: _, tool_choice: __, text: ___, ...body } = parseBody(CreateRequest, text)
  host.gateway.checkSlots(body, text.length)
  if (body.model == null) throw invalid('Missing required parameter: "model"', 'model', 'missing_required_parameter')
  if (body.input == null && body.previous_response_id == null) {
    throw invalid('Missing required parameter: "input"', 'input', 'missing_required_parameter')
  }
  const given = await withReferences(host.gateway, body.input ?? [], call.principal)
  const items: InputItem[] = typeof given === 'string' ? [{ role: 'user', content: given }] : given
  const asked = toAsked({ ...body, input: [...items, { role: 'user', content: ASK }], store: false, stream: false, background: false })
  const headers = openAiHeaders(call.quota)
  const hold = host.gateway.hold(call.principal, 0)
  try {
    const said = await counted(saidIn(host, call, { previous: asked.previous, items }), hold)
    return await summarized(host, call, { asked, said, headers, hold })
  } finally {
    hold.close()
  }
}

interface Compaction {
  readonly asked: Asked
  /** What the user said, which `hold` counts. */
  readonly said: readonly object[]
  readonly hold: Hold
  readonly headers: Readonly<Record<string, string>>
}

async function summarized(host: Host, call: KnownCall, { asked, said, hold, headers }: Compaction): Promise<Response | Streamed> {
  const begun = await start(host, call, asked)
  try {
    const response = fieldsOf((await whole(begun)).response())
    const id = begun.about.id
    const output = [...said, { type: 'compaction', id: `cmp_${id}`, encrypted_content: compacted(summaryOf(response)) }]
    const { created_at, usage } = response
    const answer = { id, object: 'response.compaction', created_at, output, usage }
    // The answer counts itself until the client has it.
    hold.close()
    return jsonAnswer(answer, { headers, gateway: host.gateway, principal: call.principal })
  } catch (thrown) {
    begun.run.close()
    return openAiFailure(
      reportError(host, thrown, { transport: 'responses', message: 'A compaction failed', ...call.trace.fields }),
      headers,
    )
  }
}

/** What the user said, in the conversation before and in this request. */
async function* saidIn(
  host: Host,
  { principal }: KnownCall,
  { previous: id, items }: { readonly previous: string | undefined; readonly items: readonly InputItem[] },
): AsyncGenerator<object, void> {
  const previous = await previousOf(host, { previous: id }, principal)
  if (previous) {
    for await (const item of contextOf(host.gateway, previous, { principal, order: 'asc' })) {
      if (fieldsOf(item)['role'] === 'user') yield item
    }
  }
  yield* items.filter(isUsers).map((item) => shown(item, `msg_${host.newId()}`))
}

/** All items. Throws `overloaded` as soon as the caller's memory has no room for the next. */
async function counted(items: AsyncIterable<object>, hold: Hold): Promise<object[]> {
  const all: object[] = []
  let bytes = 0
  for await (const item of items) {
    hold.grow((bytes += weigh(item)))
    all.push(item)
  }
  return all
}

function isUsers(item: InputItem): boolean {
  return 'role' in item && item.role === 'user'
}

/** An item as an output has it. `fresh`: its id, if the client gave none. */
function shown(item: InputItem, fresh: string): object {
  const { content, ...given } = item as Extract<InputItem, { role: string }>
  const id = 'id' in given && typeof given.id === 'string' ? given.id : fresh
  return {
    ...given,
    type: 'message',
    id,
    status: 'completed',
    content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
  }
}

function summaryOf({ output }: Readonly<Record<string, unknown>>): string {
  const parts = recordsIn(output).flatMap((item) => (item['type'] === 'message' ? recordsIn(item['content']) : []))
  const summary = parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('')
  if (summary === '') throw new UampError('provider_error', 'The agent made no summary')
  return summary
}
