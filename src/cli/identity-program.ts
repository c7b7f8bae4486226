import type { Command } from 'commander'
import type { ExplainFlags } from './commands/explain.ts'
import type { KeysFlags, RevokeFlags } from './commands/identity.ts'
import { leave } from './leave.ts'

const DATA = ['--data <folder>', 'the data folder, even while a server uses it (default: $UAMP_DATA, else .uamp)'] as const

/** `uamp keys`. */
export function addKeys(uamp: Command): void {
  const keys = uamp.command('keys').description('show or replace the keys that a server signs with')
  keys
    .command('list')
    .description('show the keys, what each is for and whether it signs')
    .option(...DATA)
    .option('--json', 'print JSON')
    .action(async (flags: KeysFlags) => {
      const { listKeys } = await import('./commands/identity.ts')
      await leave(await listKeys(flags))
    })
  keys
    .command('rotate')
    .description('let the next key sign; the one before stays public as long as something that it signed may be valid')
    .argument('[purpose]', 'tokens, responses, cards or envelopes (default: all that have keys)')
    .option(...DATA)
    .option('--json', 'print JSON')
    .action(async (purpose: string | undefined, flags: KeysFlags) => {
      const { rotateKeys } = await import('./commands/identity.ts')
      await leave(await rotateKeys(purpose, flags))
    })
}

/** `uamp access`. */
export function addAccess(uamp: Command): void {
  const access = uamp.command('access').description('say whom a server believes, and why')
  const revoking = (name: string, description: string): Command =>
    access
      .command(name)
      .description(description)
      .option('--token <jti>', 'one token, by its id or as a whole; "-" reads it from standard input')
      .option('--key <kid>', 'all that this key has signed')
      .option('--principal <id>', 'everything of this caller, as `uamp store show` names it')
      .option('--issuer <url>', 'the issuer of the token or the key (default: any; of a whole token: its own)')
      .option('--tenant <name>', 'the tenant of the principal (default: default)')
      .option(...DATA)
  revoking('revoke', 'refuse a token, a key or a caller from now on, and cut their connections').action(async (flags: RevokeFlags) => {
    const { revoke } = await import('./commands/identity.ts')
    await leave(await revoke(flags))
  })
  revoking('restore', 'take a revocation back').action(async (flags: RevokeFlags) => {
    const { restore } = await import('./commands/identity.ts')
    await leave(await restore(flags))
  })
  access
    .command('revoked')
    .description('show what is revoked')
    .option(...DATA)
    .option('--json', 'print JSON')
    .action(async (flags: KeysFlags) => {
      const { listRevoked } = await import('./commands/identity.ts')
      await leave(await listRevoked(flags))
    })
  access
    .command('explain')
    .description('say step by step why a server would accept or refuse a token, and what it may do; never prints the token')
    .argument('[token]', 'the token; without it, or with -, it is read from standard input')
    .option('--token-file <file>', 'a file with the token in it')
    .option('-c, --config <file>', 'the config of the server (default: ./uamp.config.*)')
    .option('--url <url>', "the server's own URL (default: publicUrl of the config, else http://127.0.0.1 with its port)")
    .option('--json', 'print JSON')
    .action(async (token: string | undefined, flags: ExplainFlags) => {
      const { explain } = await import('./commands/explain.ts')
      await leave(await explain(token, flags))
    })
}
