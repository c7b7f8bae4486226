import { InvalidArgumentError, type Command } from 'commander'
import { parseAmount } from '../protocol/money.ts'
import { duration } from './amounts.ts'
import type { LedgerFlags } from './commands/ledger.ts'
import type { ListFlags, PayFlags, TokenFlags, TransferFlags } from './commands/pay.ts'
import { leave } from './leave.ts'

const commands = () => import('./commands/pay.ts')

/** `uamp pay`. */
export function addPay(uamp: Command): void {
  const pay = uamp.command('pay').description('make tokens that pay agents, and see what became of the money, on a running server')
  const asks = (line: string, description: string): Command =>
    pay
      .command(line)
      .description(description)
      .option('--url <url>', 'the server (default: http://localhost:8787)')
      .option('--token <secret>', 'the secret of your token (default: $UAMP_TOKEN)')
      .option('--token-file <file>', 'a file with the secret in it')
      .option('--json', 'print JSON')
  const currency = ['--currency <name>', 'the currency (default: USD)'] as const
  const agent = ['--agent <name>', "an agent's account, for those who may host it"] as const
  const principal = ['--principal <id>', "a caller's account, for those with the grant bank"] as const
  asks('token', 'make a token that pays, and print it; it is shown this once')
    .requiredOption('--amount <amount>', 'how much it holds, such as 5 or 0.05', amount)
    .requiredOption('--agents <names>', 'the agents that it pays, with commas between; "*": all', names)
    .option('--expires <time>', 'how long it can be used, such as 1d (default: 1d)', duration)
    .option('--depth <number>', 'how often its money may be handed on (default: 5)', depth)
    .option(...currency)
    .option('--principal <id>', 'whose it is, for those with the grant bank')
    .action(async (flags: TokenFlags) => leave(await (await commands()).makeToken(flags)))
  asks('tokens', 'show your tokens, without their texts')
    .option('--limit <number>', 'how many (default: 20)')
    .option(...principal)
    .action(async (flags: ListFlags) => leave(await (await commands()).listTokens(flags)))
  asks('topup', 'add money to a token')
    .argument('<id>', 'the id of the token')
    .argument('<amount>', 'how much', amount)
    .action(async (id: string, text: string, flags: PayFlags) => leave(await (await commands()).topUp(id, text, flags)))
  asks('revoke <id>', 'end a token, and all that were split off from it; what is left comes back').action(
    async (id: string, flags: PayFlags) => leave(await (await commands()).revokeToken(id, flags)),
  )
  asks('balance', 'show what is in an account')
    .option(...currency)
    .option(...principal)
    .option(...agent)
    .action(async (flags: ListFlags) => leave(await (await commands()).balance(flags)))
  asks('statement', 'show what came and went, the newest first')
    .option('--of <token>', 'of one token, by its id')
    .option('--limit <number>', 'how many (default: 20)')
    .option(...currency)
    .option(...principal)
    .option(...agent)
    .action(async (flags: ListFlags) => leave(await (await commands()).statement(flags)))
  asks('deposit', 'put money into the account of a caller; needs the grant bank')
    .argument('<principal>', 'whose account')
    .argument('<amount>', 'how much', amount)
    .option(...currency)
    .option('--key <text>', 'the same key again moves nothing')
    .action(async (to: string, text: string, flags: TransferFlags) => leave(await (await commands()).deposit(to, text, flags)))
  asks('refund <payment>', 'give a payment back, or a part of it')
    .option('--amount <amount>', 'how much (default: all that is left of it)', amount)
    .option('--key <text>', 'the same key again moves nothing')
    .action(async (payment: string, flags: TransferFlags) => leave(await (await commands()).refund(payment, flags)))
}

/** `uamp ledger`. */
export function addLedger(uamp: Command): void {
  uamp
    .command('ledger')
    .description('check the money that a server keeps')
    .command('check')
    .description('add up every movement, and compare the sums with the accounts; exit code 1 if they differ')
    .option('--data <folder>', 'the data folder, even while a server uses it (default: $UAMP_DATA, else .uamp)')
    .option('--json', 'print JSON')
    .action(async (flags: LedgerFlags) => {
      const { checkLedger } = await import('./commands/ledger.ts')
      await leave(await checkLedger(flags))
    })
}

function amount(text: string): string {
  if ((parseAmount(text) ?? 0n) > 0n) return text
  throw new InvalidArgumentError('Write an amount above 0 as 5 or 0.05, with at most nine decimals.')
}

function names(text: string): readonly string[] {
  const agents = text.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()]))
  if (agents.length > 0) return agents
  throw new InvalidArgumentError('Name the agents, with commas between, or * for all.')
}

function depth(text: string): number {
  if (/^\d{1,2}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number, such as 2; 0: it cannot be handed on.')
}
