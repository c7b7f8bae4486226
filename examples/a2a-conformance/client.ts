/** A few of the things that the kit asks for. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

const url = process.argv[2] ?? 'http://localhost:8787'
const VERSION = { 'content-type': 'application/json', 'a2a-version': '1.0' }

const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json()
assert.equal(card.name, 'a2a-conformance')
assert.equal(card.protocolVersion, undefined, 'a field of 0.3 in a pure card of 1.0')
const jsonRpc = addressOf('JSONRPC')
const rest = addressOf('HTTP+JSON')

function addressOf(binding: string): string {
  return card.supportedInterfaces.find((each: { protocolBinding: string }) => each.protocolBinding === binding).url
}

function message(prefix: string, taskId?: string) {
  return { messageId: `${prefix}-${randomUUID()}`, role: 'ROLE_USER', parts: [{ text: 'Hello' }], taskId }
}

async function send(prefix: string, taskId?: string) {
  const params = { message: message(prefix, taskId) }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params })
  return (await (await fetch(`${jsonRpc}/`, { method: 'POST', headers: VERSION, body })).json()).result
}

const parts = async (prefix: string) => (await send(prefix)).task.artifacts[0].parts
assert.deepEqual(await parts('tck-artifact-text'), [{ text: 'Generated text content' }])
const about = { filename: 'output.txt', mediaType: 'text/plain' }
assert.deepEqual(await parts('tck-artifact-file'), [{ raw: btoa('tck'), ...about }])
assert.deepEqual(await parts('tck-artifact-file-url'), [{ url: 'https://example.com/output.txt', ...about }])
assert.deepEqual((await parts('tck-artifact-data'))[0].data, { key: 'value', count: 42 })

assert.deepEqual((await send('tck-message-response')).message.parts, [{ text: 'Direct message response' }])
assert.equal((await send('tck-reject-task')).task.status.state, 'TASK_STATE_REJECTED')

const { task } = await send('tck-input-required')
assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED')
const done = (await send('tck-complete-task', task.id)).task
assert.deepEqual([done.id, done.status.state], [task.id, 'TASK_STATE_COMPLETED'])

const stream = await fetch(`${rest}/message:stream`, {
  method: 'POST',
  headers: VERSION,
  body: JSON.stringify({ message: message('tck-stream-artifact-chunked') }),
})
const events = [...(await stream.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
assert.ok(events[0].task)
const chunks = events.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.parts.map(({ text }: { text: string }) => text) ?? [])
assert.equal(chunks.join(''), 'chunk-1 chunk-2')
assert.equal(events.at(-1).statusUpdate.status.state, 'TASK_STATE_COMPLETED')
console.log('ready for the kit')
