import assert from 'node:assert/strict'
import { connect } from 'uamp/client'

const url = process.argv[2] ?? 'http://localhost:8787'

assert.match(await (await fetch(`${url}/shop`)).text(), /was here before/)
assert.match(await (await fetch(`${url}/mine/you`)).text(), /for you/)

for (const transport of ['websocket', 'sse'] as const) {
  const client = connect(url, { transport })
  const session = await client.session()
  assert.equal(await session.say('/count 3'), '1 2 3')
  client.close()
}
console.log('pages and agents, on one port')
