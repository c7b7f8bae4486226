import assert from 'node:assert/strict'
import { connect } from 'uamp/client'

const url = process.argv[2] ?? 'http://localhost:8787'
const client = connect(url)
let purse = 10

const session = await client.session({
  tools: {
    pay: {
      description: 'Pays from the purse',
      parameters: { type: 'object', properties: { total: { type: 'number' } } },
      run({ total }) {
        if (Number(total) > purse) throw new Error('the purse is empty')
        purse -= Number(total)
        return { left: purse }
      },
    },
  },
})

assert.equal(await session.say('3 apples, please'), 'Sold: {"total":6}')
assert.equal(purse, 4)
assert.equal(await session.say('2 pears'), 'Not paid.')
assert.match(await session.say('1 unicorn'), /we have no unicorn/)
assert.match(await session.say('hello?'), /such as "3 apples"/)
client.close()

const ledger = await (await fetch(`${url}/ledger`)).json()
assert.deepEqual(ledger, {
  turns: 4,
  placed: [
    { type: 'order.placed', item: 'apples', count: 3 },
    { type: 'order.placed', item: 'pears', count: 2 },
    { type: 'order.placed', item: 'unicorn', count: 1 },
  ],
})
console.log('two skills, one agent')
