import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { moneyOf } from '../support/ledger-money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { finished, project } from './run.ts'
import { KEY, pasted, Terminal } from './terminal.ts'

/** An agent that shows its price. */
const priced = defineAgent('priced', async function* () {
  yield 'Hi'
})
Object.assign(priced.capabilities, { extensions: { uamp: { price: { call: '0.02', currency: 'USD' } } } })

async function start() {
  const server = await startServer([demo(), priced])
  const money = moneyOf(server.ledger)
  const folder = await project()
  const file = join(folder, 'token')
  const holds = async (amount: string) => {
    const token = await money.token(amount)
    await writeFile(file, `${token.text}\n`)
    await chmod(file, 0o600)
    return token
  }
  const env = { HOME: folder, XDG_STATE_HOME: join(folder, 'state'), TMPDIR: folder }
  const open = async (...args: string[]): Promise<Terminal> => {
    const terminal = new Terminal(['chat', server.url, ...args], { cwd: folder, env })
    await terminal.answers(/ listens\./)
    return terminal
  }
  return { ...server, money, folder, file, holds, env, open }
}

/** Presses a key once the menu takes keys: those that come at once were meant for the line before. */
async function choose(terminal: Terminal, key: string): Promise<void> {
  do {
    terminal.clear()
    terminal.write(KEY.up)
    await terminal.prints(/❯ (?:y {2}Yes|n {2}No)/)
  } while (!terminal.output.includes('❯ y'))
  terminal.clear()
  terminal.write(KEY.down)
  await terminal.prints(/❯ n {2}No/)
  terminal.clear()
  terminal.write(key)
}

verifies(['chat-pay.asks', 'chat-pay.secret'], 'a person is asked, pays, and sees what is left', async () => {
  const { holds, open, file, money } = await start()
  const token = await holds('1')
  const chat = await open('--pay-token-file', file)
  chat.write(`/pay 0.02${KEY.enter}`)
  await chat.prints(/Pay 0\.02 USD\? \(The demo wants to be paid\)[^]*n {2}No/)
  await choose(chat, 'y')
  await chat.answers(/Paid 0\.02 USD\. Thank you\.[^]*0\.98 USD left/)
  chat.clear()
  chat.write(`/pay 0.5${KEY.enter}`)
  await chat.prints(/Pay 0\.50 USD\?/)
  // Enter alone is a no.
  await choose(chat, KEY.enter)
  await chat.answers(/payment_required/)
  expect(await money.earned('demo')).toBe('0.02')
  expect(chat.stdout).not.toContain(token.text)
})

verifies(['chat-pay.asks', 'chat-pay.secret'], 'without a token one is asked for, is not shown, and another one may follow', async () => {
  const { open, money } = await start()
  const token = await money.token('1')
  const chat = await open()
  chat.write(`/pay 0.02${KEY.enter}`)
  await chat.prints(/Pay 0\.02 USD\?[^]*n {2}No/)
  await choose(chat, 'y')
  await chat.prints(/Payment token \(it is not shown\): $/)
  chat.write(`my-secret${KEY.enter}`)
  await chat.prints(/payment refused: The payment token is not one of this server[^]*t {2}Yes, with another token/)
  await choose(chat, 't')
  await chat.prints(/Payment token \(it is not shown\): $/)
  chat.write(`${pasted(token.text)}${KEY.enter}`)
  await chat.answers(/0\.98 USD left/)
  expect(chat.stdout).not.toContain('my-secret')
  expect(chat.stdout).not.toContain(token.text)
})

verifies('chat-pay.asks', 'the price of an agent is told when the chat begins', async () => {
  const { open } = await start()
  const chat = await open('--agent', 'priced')
  await chat.prints(/Price: 0\.02 USD for an answer/)
})

verifies(['chat-pay.pipe', 'chat-pay.secret'], 'a script declines, unless it has a budget', async () => {
  const { url, holds, file, folder: cwd, env } = await start()
  const token = await holds('1')
  const ask = (args: readonly string[], more: object = {}) => finished(['chat', url, ...args], { cwd, env, ...more })
  const cases = [
    { args: ['/pay 0.02'], says: /Payment of 0\.02 USD declined \(The demo wants to be paid\)\. To have this chat pay/ },
    { args: ['/pay 0.02', '--pay-token-file', file], says: /declined .*--budget/ },
    { args: ['/pay 0.02', '--pay-token-file', file, '--budget', '0.01'], says: /It is more than is left of the --budget/ },
  ]
  for (const { args, says } of cases) {
    const ended = await ask(args)
    expect(ended).toMatchObject({ code: 3, stdout: '', stderr: expect.stringMatching(says) })
    expect(ended.stderr).not.toContain(token.text)
  }
  expect(await ask(['/pay 0.02', '--pay-token-file', file, '--budget', '0.05'])).toMatchObject({
    code: 0,
    stdout: 'Paid 0.02 USD. Thank you.\n',
  })
  // The budget is that of all messages.
  const piped = await ask(['--budget', '0.03'], { input: '/pay 0.02\n/pay 0.02\n', env: { ...env, UAMP_PAY_TOKEN: token.text } })
  expect(piped.stdout).toBe('Paid 0.02 USD. Thank you.\n')
  expect(piped.stderr).toContain('It is more than is left of the --budget')
  expect(await token.left()).toBe('0.96')
  expect(await ask(['hi', '--budget', 'much'])).toMatchObject({ stderr: expect.stringContaining('Write an amount as 0.10 or 5.') })
})
