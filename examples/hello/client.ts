import assert from 'node:assert/strict'
import { connect } from 'uamp/client'

const client = connect(process.argv[2] ?? 'http://localhost:8787')
const session = await client.session()

let answer = ''
for await (const event of session.ask('Ada')) {
  if (event.type === 'response.delta' && event.delta.type === 'text') answer += event.delta.text
}
client.close()

console.log(answer)
assert.equal(answer, 'Hello, Ada!')
