import { jsonAnswer } from '../../core/edge/json-answer.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, recordsIn } from '../../protocol/json.ts'
import { openAiFailure } from '../../wire/openai/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { toAsked } from './request.ts'
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
  if (body.input == null && body.previous_response_id == null) {
    throw invalid('Missing required parameter: "input"', 'input', 'missing_required_parameter')
  }
  const given = await withReferences(host.gateway, body.input ?? [], call.principal)
  const items: InputItem[] = typeof given === 'string' ? [{ role: 'user', content: given }] : given
  const asked = toAsked({ ...body, input: [...items, { role: 'user', content: ASK }], store: false, stream: false, background: false })
  const headers = openAiHeaders(call.quota, host.newId())
  const said = [...(await saidBefore(host, call, asked.previous)), ...items.filter(isUsers).map(shown)]
  const begun = await start(host, call, asked)
  try {
    const response = fieldsOf((await whole(begun)).response())
    const id = begun.about.id
    const output = [...said, { type: 'compaction', id: `cmp_${id}`, encrypted_content: compacted(summaryOf(response)) }]
    const { created_at, usage } = response
    const answer = { id, object: 'response.compaction', created_at, output, usage }
    return jsonAnswer(answer, { headers, gateway: host.gateway, principal: call.principal })
  } catch (thrown) {
    begun.run.close()
    return openAiFailure(reportError(host, thrown, { transport: 'responses', message: 'A compaction failed' }), headers)
  }
}

/** What the user said in the conversation before. */
async function saidBefore(host: Host, { principal }: KnownCall, id: string | undefined): Promise<object[]> {
  const previous = await previousOf(host, { previous: id }, principal)
  const said: object[] = []
  if (!previous) return said
  for await (const item of contextOf(host.gateway, previous, { principal, order: 'asc' })) {
    if (fieldsOf(item)['role'] === 'user') said.push(item)
  }
  return said
}

function isUsers(item: InputItem): boolean {
  return 'role' in item && item.role === 'user'
}

function shown(item: InputItem): object {
  const { content } = item as Extract<InputItem, { role: string }>
  return { ...item, type: 'message', content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content }
}

function summaryOf({ output }: Readonly<Record<string, unknown>>): string {
  const parts = recordsIn(output).flatMap((item) => (item['type'] === 'message' ? recordsIn(item['content']) : []))
  const summary = parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('')
  if (summary === '') throw new UampError('provider_error', 'The agent made no summary')
  return summary
}
