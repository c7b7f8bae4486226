import { resolve } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { actionsOf } from '../../auth/scopes.ts'
import { getJwks } from '../../auth/verify/fetch-keys.ts'
import { looksLikeJwt } from '../../auth/verify/token.ts'
import { Verifier, type Note, type Verified } from '../../auth/verify/verifier.ts'
import { findConfig } from '../../config/agents.ts'
import { examine, type Examined } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import { readSource } from '../../config/source.ts'
import { clocksOf } from '../../core/basics/time.ts'
import type { Denial } from '../../core/ports/access.ts'
import { isEqual } from '../../core/secrets/is-equal.ts'
import { UampError } from '../../protocol/errors.ts'
import { guardedHttp } from '../../server/node/guarded-http.ts'
import { nodeHttp } from '../../server/node/http-client.ts'
import { normalized } from '../../server/public-url.ts'
import { harmless, painter } from '../print.ts'
import { fileAt } from '../setup.ts'
import { secretOf } from '../tokens.ts'
import { present } from '../../wire/fields.ts'

export interface ExplainFlags {
  readonly config?: string
  readonly url?: string
  readonly tokenFile?: string
  readonly json?: true
}

interface Step {
  readonly step: string
  readonly found: string
  readonly right: boolean
}

/** The exit code for a token that the server would refuse. */
const REFUSED = 3

/** Says step by step why a server with this config would accept or refuse a token. The token itself is never printed. */
export async function explain(given: string | undefined, flags: ExplainFlags): Promise<number> {
  // As it is copied from a request.
  const token = (await tokenOf(given, flags)).trim().replace(/^(?:bearer|dpop) +/i, '')
  if (token === '') throw new UampError('invalid_request', 'The token is empty: whatever should have printed it has not')
  const settings = await settingsOf(flags.config)
  const { publicUrl, port = 8787, tokens } = settings
  const ownUrl = normalized(flags.url ?? publicUrl ?? `http://127.0.0.1:${port}`)
  const name = Object.entries(tokens).find(([, secret]) => isEqual(secret, token))?.[0]
  if (name !== undefined)
    return tell(flags, [{ step: 'form', found: `the secret of the token "${name}" in the config`, right: true }], { name })
  if (!looksLikeJwt(token))
    return tell(flags, [], { denied: 'invalid', message: 'It is neither a JWT nor one of the secrets in the config' })
  const steps: Step[] = []
  const outcome = await verify(token, { settings, ownUrl, note: (step, found, right = true) => steps.push({ step, found, right }) })
  if ('denied' in outcome && outcome.denied === 'untrusted')
    steps.push({ step: 'server', found: `the issuer is not this server itself, which is ${ownUrl}; --url names another`, right: false })
  return tell(flags, steps, outcome)
}

async function tokenOf(given: string | undefined, { tokenFile }: ExplainFlags): Promise<string> {
  const token = given === undefined || given === '-' ? undefined : given
  if (token !== undefined || tokenFile !== undefined)
    return secretOf({ ...(token !== undefined && { token }), ...(tokenFile !== undefined && { tokenFile }) }, {}) ?? ''
  if (process.stdin.isTTY) throw new UampError('invalid_request', 'Give a token: as an argument, with --token-file, or on standard input')
  return textOf(process.stdin)
}

async function settingsOf(config: string | undefined): Promise<Examined['settings']> {
  const found = config ?? findConfig('.')
  if (found === undefined) return { tokens: {} }
  const context = { env: process.env, modules: new Modules(), log: () => undefined }
  const { settings, mistakes } = await examine(await readSource(fileAt(resolve(found)), context.modules), context)
  const wrong = mistakes.find((line) => /\baccess\b/.test(line))
  if (wrong !== undefined) throw new UampError('invalid_request', wrong)
  return settings
}

interface Verifying {
  readonly settings: Examined['settings']
  readonly ownUrl: string
  readonly note: Note
}

async function verify(token: string, { settings, ownUrl, note }: Verifying): Promise<Verified | Denial> {
  const http = nodeHttp()
  const outbound = guardedHttp(present(settings.outbound ?? {}))
  const { signal: closing } = new AbortController()
  const own = () => getJwks(`${ownUrl}/.well-known/jwks.json`, { http, signal: closing })
  const log = (_: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    const { error } = fields
    note('keys', `${message}: ${error instanceof Error ? error.message : ''}`, false)
  }
  const parts = { http, outbound, closing, log, ...clocksOf({}), ownUrl: () => ownUrl, signer: { publicJwks: own } }
  try {
    return await new Verifier(settings.access ?? {}, parts).verify(token, { note })
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    // Keys of others: the steps say why they cannot be read.
    return {
      denied: 'invalid',
      message: thrown instanceof UampError ? message : `${message}. This server must run, or its keys cannot be read`,
    }
  } finally {
    http.close()
    outbound.close()
  }
}

function tell({ json }: ExplainFlags, steps: readonly Step[], outcome: Verified | Denial | { readonly name: string }): number {
  const accepted = !('denied' in outcome)
  const facts = factsOf(outcome)
  if (json) process.stdout.write(`${JSON.stringify({ accepted, steps, ...Object.fromEntries(facts) })}\n`)
  else {
    const paint = painter(process.stdout)
    const lines = steps.map(({ step, found, right }) => `${right ? paint('green', '✓') : paint('red', '✗')} ${step}: ${found}`)
    const verdict = accepted ? paint('green', 'Accepted') : paint('red', 'Refused')
    process.stdout.write(`${harmless([...lines, '', verdict, ...facts.map(([name, value]) => `  ${name}: ${shown(value)}`)].join('\n'))}\n`)
  }
  return accepted ? 0 : REFUSED
}

type Fact = readonly [name: string, value: string | readonly string[]]

function factsOf(outcome: Verified | Denial | { readonly name: string }): readonly Fact[] {
  if ('denied' in outcome) {
    return [
      ['denied', outcome.denied],
      ['because', outcome.message],
    ]
  }
  if ('name' in outcome) return [['principal', outcome.name]]
  const { principal, confirmation } = outcome
  const { id, tenant, agents, labels = [], scopes } = principal
  return [
    ['principal', id],
    ['tenant', tenant],
    ['agents', agents ?? 'all'],
    ['scopes', scopes],
    ['may', [...actionsOf(principal, agents?.[0] ?? 'any'), ...scopes.filter((word) => word.startsWith('host:'))]],
    ...(labels.length > 0 ? [['labels', labels] as const] : []),
    ...(confirmation?.jkt === undefined ? [] : [['needs', 'a DPoP proof with each request'] as const]),
    ...(confirmation?.x5t === undefined ? [] : [['needs', "the client's certificate on the connection"] as const]),
  ]
}

function shown(value: Fact[1]): string {
  if (typeof value === 'string') return value
  return value.length === 0 ? 'nothing' : value.join(', ')
}
