// The shop as a process of its own, so that it can be killed. Arguments: the data folder, the facilitator, and `wait` for an agent that
// never ends.
import { defineAgent } from '../../../dist/index.js'
import { serve } from '../../../dist/serve/index.js'

const [data, facilitator, wait] = process.argv.slice(2)

const shop = defineAgent(
  'shop',
  async function* () {
    if (wait) await new Promise(() => undefined)
    yield 'Thank you'
  },
  { price: { call: '0.01' } },
)
const { url } = await serve(shop, {
  port: 0,
  data,
  log: () => undefined,
  payments: { x402: { payTo: '0x1111111111111111111111111111111111111111', network: 'eip155:84532', facilitator } },
  outbound: { allow: ['127.0.0.1'] },
})
process.stdout.write(`${url}\n`)
