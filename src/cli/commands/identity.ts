import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StoredRevocations } from '../../auth/revocations.ts'
import { PURPOSES, storedSigner, type KeyFacts } from '../../auth/signer.ts'
import { clocksOf } from '../../core/basics/time.ts'
import { checkKey } from '../../core/durable/check-key.ts'
import type { Revocation } from '../../core/ports/revocations.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { checkData, openData } from '../../serve/data.ts'
import { identityControl, type IdentityControl, type Revoked } from '../../serve/identity-control.ts'
import { remoteIdentity } from '../../serve/storage/control.ts'
import { isInUse } from '../../stores/sqlite-schema.ts'
import { harmless, report } from '../print.ts'

export interface KeysFlags {
  readonly data?: string
  readonly json?: true
}

export interface RevokeFlags {
  readonly data?: string
  readonly token?: string
  readonly key?: string
  readonly principal?: string
  readonly issuer?: string
  readonly tenant?: string
}

export async function listKeys({ data, json }: KeysFlags): Promise<number> {
  const keys = await using(data, (identity) => identity.keys())
  if (json) process.stdout.write(`${JSON.stringify({ keys })}\n`)
  else if (keys.length === 0) process.stdout.write('There are no keys yet: each is made when it is first needed.\n')
  else process.stdout.write(keyTable(keys))
  return 0
}

export async function rotateKeys(purpose: string | undefined, { data, json }: KeysFlags): Promise<number> {
  const chosen = PURPOSES.find((each) => each === purpose)
  if (purpose !== undefined && chosen === undefined) {
    throw new UampError('invalid_request', `There are no keys for "${purpose}": choose one of ${PURPOSES.join(', ')}`)
  }
  const keys = await using(data, (identity) => identity.rotate(chosen))
  if (json) process.stdout.write(`${JSON.stringify({ keys })}\n`)
  else if (keys.length === 0) process.stdout.write('There are no keys yet, so none was replaced.\n')
  else process.stdout.write(keys.map((key) => `${key.purpose}: ${key.kid} signs from now on.\n`).join(''))
  return 0
}

export async function revoke({ data, ...flags }: RevokeFlags): Promise<number> {
  const what = await revocationOf(flags)
  const { cut, withdrawn } = await using(data, (identity) => identity.revoke(what))
  const keys = withdrawn ? ' It was a key of this server, which has new ones now.' : ''
  const connections = cut === 0 ? '' : ` ${cut === 1 ? 'One connection was' : `${cut} connections and sessions were`} cut.`
  process.stdout.write(`The ${described(what)} is revoked.${keys}${connections}\n`)
  return 0
}

export async function restore({ data, ...flags }: RevokeFlags): Promise<number> {
  const what = await revocationOf(flags)
  const found = await using(data, (identity) => identity.restore(what))
  process.stdout.write(`The ${described(what)} ${found ? 'is no longer revoked' : 'was not revoked'}.\n`)
  return found ? 0 : 1
}

export async function listRevoked({ data, json }: KeysFlags): Promise<number> {
  const revoked = await using(data, (identity) => identity.revoked())
  if (json) process.stdout.write(`${JSON.stringify({ revoked })}\n`)
  else process.stdout.write(revoked.length === 0 ? 'Nothing is revoked.\n' : revokedTable(revoked))
  return 0
}

/** Asks the server that uses a data folder, or does it in the folder itself if none does. */
async function using<T>(given: string | undefined, run: (identity: IdentityControl) => Promise<T>): Promise<T> {
  const data = given || process.env['UAMP_DATA'] || '.uamp'
  if (data === 'memory') throw new UampError('invalid_request', 'Keys in memory end with their server: name its data folder with --data')
  await checkData(data)
  if (!existsSync(join(data, 'uamp.db'))) {
    throw new UampError('not_found', `There is no data in ${data}: name the folder of the server with --data`)
  }
  const opened = open(data)
  if (!opened) return asked(data, run)
  const { store, keys } = opened
  const { now } = clocksOf({})
  try {
    await checkKey(store, keys)
    const known = await storedSigner({ store, keys, now }).list()
    // The config, which may name other algorithms, is not known here: new keys are like those before.
    const algorithms = Object.fromEntries(known.filter(({ state }) => state === 'signs').map(({ purpose, alg }) => [purpose, alg]))
    const signer = storedSigner({ store, keys, now, algorithms })
    const revocations = new StoredRevocations({ store, now })
    await revocations.load()
    return await run(identityControl({ signer, revocations }))
  } finally {
    await store.close()
  }
}

function open(data: string) {
  try {
    return openData(data, { log: (_, message) => report(message), mostBytes: Infinity })
  } catch (thrown) {
    if (isInUse(thrown)) return undefined
    throw thrown
  }
}

async function asked<T>(data: string, run: (identity: IdentityControl) => Promise<T>): Promise<T> {
  try {
    return await run(remoteIdentity(data))
  } catch (thrown) {
    if (thrown instanceof UampError) throw thrown
    throw new UampError('conflict', `${data} is in use by a server that does not answer: stop it first`, { cause: thrown })
  }
}

async function revocationOf({ token, key, principal, issuer, tenant }: Omit<RevokeFlags, 'data'>): Promise<Revocation> {
  if ([token, key, principal].filter((each) => each !== undefined).length !== 1) {
    throw new UampError('invalid_request', 'Choose one: --token <jti or token>, --key <kid> or --principal <id>')
  }
  if (principal === '' || key === '' || token === '') throw nothing()
  if (principal !== undefined) return { kind: 'principal', id: principal, ...(tenant !== undefined && { tenant }) }
  const by = issuer === undefined ? {} : { issuer }
  if (key !== undefined) return { kind: 'key', id: key, ...by }
  const text = token === '-' ? (await standardInput()).trim() : (token ?? '')
  if (text === '') throw nothing()
  return text.split('.').length === 3 ? { ...named(text), ...by } : { kind: 'token', id: text, ...by }
}

/** A script whose variable is empty must not believe that it has revoked something. */
function nothing(): UampError {
  return new UampError('invalid_request', 'The id is empty: give the one to look for')
}

/** What a token says of itself. Nobody has to prove that it is a good one to have it refused. */
function named(token: string): Revocation & { kind: 'token' } {
  const { jti, iss, exp } = claimsIn(token)
  if (typeof jti !== 'string')
    throw new UampError('invalid_request', 'The token has no id (jti) to revoke it by: revoke its principal, or its key')
  return {
    kind: 'token',
    id: jti,
    ...(typeof iss === 'string' && { issuer: iss }),
    ...(typeof exp === 'number' && { expiresAt: exp * 1000 }),
  }
}

function claimsIn(token: string): Readonly<Record<string, unknown>> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    if (isRecord(claims)) return claims
  } catch {}
  throw new UampError('invalid_request', 'The token cannot be read')
}

async function standardInput(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) text += String(chunk)
  return text
}

function described({ kind, id }: Revocation): string {
  return `${kind} ${harmless(id)}`
}

const STATES = { signs: 'signs', next: 'signs next', retired: 'verifies' } satisfies Record<KeyFacts['state'], string>

function keyTable(keys: readonly KeyFacts[]): string {
  const rows = keys.map(({ purpose, kid, alg, state, createdAt, until }) => [
    purpose,
    kid,
    alg,
    STATES[state],
    time(createdAt),
    time(until),
  ])
  return table([['purpose', 'key', 'algorithm', 'state', 'made', 'public until'], ...rows])
}

function revokedTable(revoked: readonly Revoked[]): string {
  const rows = revoked.map((each) => {
    const of = each.kind === 'principal' ? (each.tenant ?? '') : (each.issuer ?? '')
    return [each.kind, harmless(each.id), harmless(of), time(each.at)]
  })
  return table([['kind', 'id', 'of', 'since'], ...rows])
}

function time(at: number | undefined): string {
  return at === undefined ? '' : new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  const line = (row: readonly string[]): string => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('')
}
