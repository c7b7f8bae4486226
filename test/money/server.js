// @ts-check
/** The server that is paid and killed: a program of its own, on a real folder. Its one argument is JSON. */
import { lay } from '../support/killed/fuse.js'
import { AGENTS } from './agents.js'

/** @type {{ port: number, data: string, fuse?: import('../support/killed/fuse.js').Fuse }} */
const { port, data, fuse } = JSON.parse(process.argv[2] ?? '{}')
const TENANT = 'default'
const PAGE = 500
/** What still runs when everybody has left has ended by then. */
const QUIET_MS = 10_000
// Whoever started it may be killed too.
process.stdin.on('end', () => process.exit()).resume()
const laid = fuse && lay(fuse)
const { serve } = await import('../../dist/serve/index.js')

const server = await serve(AGENTS, {
  port,
  data,
  tokens: { ada: 'ada-has-a-secret', bob: 'bob-has-a-secret' },
  allowAnonymous: true,
  log: (level, message, fields) => {
    const error = fields?.['error']
    if (level === 'error') process.stderr.write(`${message} ${error instanceof Error ? error.stack : JSON.stringify(fields)}\n`)
  },
})
const { ledger, gateway } = server

/** @param {string} id */
const account = async (id) => {
  const { available, locked, balance } = await ledger.accounts.get(TENANT, id)
  return { id, available: `${available}`, locked: `${locked}`, balance: `${balance}` }
}

const COMMANDS = {
  /** A token with so much money, which comes from outside. @param {{ amount: string }} asked */
  async issue({ amount }) {
    const from = { tenant: TENANT, owner: 'payer', agents: ['*'], currency: 'USD' }
    const { token, text } = await ledger.tokens.issue({
      ...from,
      amount: BigInt(amount),
      ttlMs: 3_600_000,
      maxDepth: 0,
      source: 'outside:USD',
    })
    return { id: token.id, text }
  },
  /** What the ledger says of itself, and of these accounts. @param {{ accounts: string[] }} asked */
  async check({ accounts }) {
    return { report: await ledger.check(), accounts: await Promise.all(accounts.map(account)) }
  },
  /** Resolves when no response runs, or none that has anything locked: one may wait long for a payment that never comes. @param {{ accounts: string[] }} asked */
  async quiet({ accounts }) {
    const until = Date.now() + QUIET_MS
    const isLocked = async () => (await Promise.all(accounts.map(account))).some(({ locked }) => locked !== '0')
    while (gateway.openResponses > 0 && Date.now() < until && (await isLocked())) await new Promise((resolve) => setTimeout(resolve, 5))
    return {}
  },
  /** Everything that was paid with a token. @param {{ token: string }} asked */
  async payments({ token }) {
    /** @type {any[]} */
    const found = []
    for (let after; ;) {
      const page = await ledger.statement(TENANT, `token:${token}`, { limit: PAGE, ...(after !== undefined && { after }) })
      for (const { kind, id, response, agent, amount } of page.items) if (kind === 'payment') found.push({ id, response, agent, amount })
      if ((after = page.next) === undefined) return found
    }
  },
  /** @param {{ graceMs: number }} asked */
  async stop({ graceMs }) {
    await server.close({ graceMs })
    setImmediate(() => process.exit(0))
    return {}
  },
}

process.on('message', (/** @type {any} */ { id, command, ...asked }) => {
  const run = COMMANDS[/** @type {keyof typeof COMMANDS} */ (command)]
  run(asked).then(
    (answer) => process.send?.({ id, answer }),
    (error) => process.send?.({ id, error: String(error?.stack ?? error) }),
  )
})
laid?.ready()
process.stdout.write('ready\n')
