// A paid agent in a process of its own, so that it can be killed. It is paid with tokens of a ledger elsewhere. Arguments: the data folder,
// the address of that ledger, what this server shows there, and `hang` for an agent that says one word and never ends.
import { defineAgent } from '../../dist/index.js'
import { serve } from '../../dist/serve/index.js'

const [data, ledger, secret, hang] = process.argv.slice(2)

const expert = defineAgent(
  'expert',
  async function* () {
    yield 'because'
    if (hang) await new Promise(() => undefined)
    yield '.'
  },
  { price: { call: '0.03' } },
)
const { url } = await serve(expert, {
  port: 0,
  data,
  log: () => undefined,
  payments: { platform: { url: `${ledger}/api/payments`, token: secret } },
  outbound: { allow: ['127.0.0.1', 'localhost'] },
})
process.stdout.write(`${url}\n`)
