// @ts-check
import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'
import { answer } from '../lib/process.js'
import { dataOf } from './data.js'

/** Our server with an agent that has a price, or with one that has none, and a token for its clients. */
const [, , store, price] = process.argv
const { data, remove } = await dataOf(store)
const agent = price === undefined ? demo() : { ...demo(), price: { call: price } }
const server = await serve([agent], { port: 0, host: '127.0.0.1', data })
const { text } = await server.ledger.tokens.issue({
  tenant: 'default',
  owner: 'anonymous',
  agents: ['*'],
  amount: 10n ** 18n,
  currency: 'USD',
  ttlMs: 3_600_000,
  maxDepth: 0,
  source: 'outside:USD',
})

answer({}, { ready: { port: server.port, headers: price === undefined ? {} : { 'X-PAYMENT': text } }, close: remove })
