import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { present, text } from '../../wire/fields.ts'
import { HTTP_STATUS } from '../../wire/refusal.ts'
import { harmless } from '../print.ts'
import { secretOf, type SecretFlags } from '../tokens.ts'

const DEFAULT_URL = 'http://localhost:8787'
const TIMEOUT_MS = 30_000

export interface PayFlags extends SecretFlags {
  readonly url?: string
  readonly json?: true
}

export interface TokenFlags extends PayFlags {
  readonly amount: string
  readonly agents: readonly string[]
  readonly expires?: number
  readonly depth?: number
  readonly currency?: string
  readonly principal?: string
}

export interface ListFlags extends PayFlags {
  readonly limit?: string
  readonly currency?: string
  readonly principal?: string
  readonly agent?: string
  readonly of?: string
}

export interface TransferFlags extends PayFlags {
  readonly amount?: string
  readonly currency?: string
  readonly key?: string
}

type Said = Readonly<Record<string, unknown>>

/** Prints the token alone on standard output, so that a script can take it. */
export async function makeToken(flags: TokenFlags): Promise<number> {
  const { amount, agents, expires, depth, currency, principal } = flags
  const expiresIn = expires === undefined ? undefined : Math.ceil(expires / 1000)
  const said = await ask(flags, 'POST tokens', present({ amount, agents, expiresIn, maxDepth: depth, currency, principal }))
  if (flags.json) return print(flags, said, '')
  process.stderr.write(
    `${word(said, 'tokenId')} holds ${money(said, 'balance')} for ${list(said, 'agents')} until ${time(said, 'expiresAt')}.\n`,
  )
  return print(flags, said, word(said, 'token'))
}

export async function listTokens(flags: ListFlags): Promise<number> {
  const said = await ask(flags, `GET tokens${query(present({ limit: flags.limit, principal: flags.principal }))}`)
  const rows = records(said, 'tokens').map((each) => [
    word(each, 'id'),
    word(each, 'status'),
    money(each, 'balance'),
    list(each, 'agents'),
    time(each, 'expiresAt'),
  ])
  if (rows.length === 0) return print(flags, said, 'There are no tokens: `uamp pay token` makes one.')
  return print(flags, said, table([['token', 'state', 'balance', 'agents', 'until'], ...rows]))
}

export async function topUp(id: string, amount: string, flags: PayFlags): Promise<number> {
  const said = await ask(flags, `POST tokens/${encodeURIComponent(id)}/topup`, { amount })
  return print(flags, said, `${word(said, 'id')} holds ${money(said, 'balance')} now.`)
}

export async function revokeToken(id: string, flags: PayFlags): Promise<number> {
  const said = await ask(flags, `DELETE tokens/${encodeURIComponent(id)}`)
  return print(flags, said, `${word(said, 'id')} has ended. What was left went back to where it came from.`)
}

export async function balance({ currency, principal, agent, ...flags }: ListFlags): Promise<number> {
  const said = await ask(flags, `GET balance${query(present({ currency, principal, agent }))}`)
  const locked = said['locked'] === '0.00' ? '' : ` (${money(said, 'locked')} more are locked)`
  return print(flags, said, `${money(said, 'balance')}${locked}`)
}

export async function statement({ limit, of: token, currency, principal, agent, ...flags }: ListFlags): Promise<number> {
  const said = await ask(flags, `GET statements${query(present({ limit, token, currency, principal, agent }))}`)
  const rows = records(said, 'entries').map((each) => [
    time(each, 'at'),
    word(each, 'type'),
    `${each['direction'] === 'out' ? '-' : '+'}${money(each, 'amount')}`,
    word(each, 'id'),
    [word(each, 'agent'), word(each, 'description')].join(' ').trim(),
  ])
  if (rows.length === 0) return print(flags, said, 'Nothing has come or gone.')
  return print(flags, said, table([['time', 'what', 'amount', 'id', 'for'], ...rows]))
}

export async function deposit(principal: string, amount: string, { currency, key, ...flags }: TransferFlags): Promise<number> {
  const said = await ask(flags, 'POST deposit', present({ principal, amount, currency, idempotencyKey: key }))
  return print(flags, said, `${harmless(principal)} has ${money(said, 'balance')} now.`)
}

export async function refund(paymentId: string, { amount, key, ...flags }: TransferFlags): Promise<number> {
  const said = await ask(flags, 'POST refund', present({ paymentId, amount, idempotencyKey: key }))
  return print(flags, said, `${money(said, 'refunded')} were given back.`)
}

async function ask(flags: PayFlags, line: string, body?: object): Promise<Said> {
  const [method = '', path = ''] = line.split(' ')
  const base = baseOf(flags.url ?? DEFAULT_URL)
  const secret = secretOf(flags, process.env)
  const response = await fetch(`${base}/api/payments/${path}`, {
    method,
    headers: { accept: 'application/json', ...(secret !== undefined && { authorization: `Bearer ${secret}` }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw new UampError('agent_offline', `No server answers at ${base}: start it with \`uamp serve\`, or name another with --url`, {
      cause,
    })
  })
  const said = await response.json().catch(() => undefined)
  if (!isRecord(said)) throw new UampError('not_supported', `What answers at ${base} is no uamp server, or one that keeps no money`)
  if (response.ok) return said
  throw refusal(response.status, isRecord(said['error']) ? said['error'] : {})
}

function baseOf(url: string): string {
  const parsed = /^https?:\/\//i.test(url) && URL.canParse(url) ? new URL(url) : undefined
  if (!parsed) throw new UampError('invalid_request', '--url must be the address of a server, such as http://localhost:8787')
  return parsed.href.replace(/\/+$/, '')
}

/** What to do about the refusals that have an answer on the command line. */
const ADVICE: Readonly<Record<number, string>> = {
  401: ': give the secret of a token, with --token-file or $UAMP_TOKEN',
  403: ': an operator of this server can, with a token that has the grant `bank`',
}

function refusal(status: number, error: Said): UampError {
  const code = text(error['code']) as ErrorCode | undefined
  const message = text(error['message']) ?? `The server answered ${status}`
  return new UampError(code !== undefined && code in HTTP_STATUS ? code : 'provider_error', `${message}${ADVICE[status] ?? ''}`)
}

function print({ json }: PayFlags, said: Said, page: string): number {
  process.stdout.write(`${json ? JSON.stringify(said) : page.trimEnd()}\n`)
  return 0
}

function query(fields: Readonly<Record<string, string>>): string {
  const search = new URLSearchParams(fields).toString()
  return search === '' ? '' : `?${search}`
}

/** What a server says is shown without what could change the screen. */
function word(said: Said, name: string): string {
  return harmless(text(said[name]) ?? '')
}

function money(said: Said, name: string): string {
  return `${word(said, name)} ${word(said, 'currency')}`
}

function time(said: Said, name: string): string {
  return word(said, name).slice(0, 16).replace('T', ' ')
}

function list(said: Said, name: string): string {
  const given = said[name]
  return harmless(Array.isArray(given) ? given.join(', ') : '')
}

function records(said: Said, name: string): Said[] {
  const given = said[name]
  return Array.isArray(given) ? given.filter(isRecord) : []
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  const line = (row: readonly string[]): string => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('')
}
