import { createHash } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { relative, resolve } from 'node:path'
import * as z from 'zod/mini'
import { RevocationForm } from '../../auth/revocations.ts'
import { PURPOSES } from '../../auth/signer.ts'
import type { LedgerReport } from '../../payments/check.ts'
import { UampError } from '../../protocol/errors.ts'
import type { IdentityControl } from '../identity-control.ts'
import type { Pruned, PruneRequest, Storage, StorageReport } from './index.ts'

/** The longest socket path that every system accepts. */
const PATH_BYTES = 100

const Asked = z.object({
  principal: z.optional(z.string()),
  before: z.optional(z.number()),
  bytes: z.optional(z.number()),
  dryRun: z.boolean(),
})

const Rotation = z.object({ purpose: z.optional(z.enum(PURPOSES)) })

/** What the owner of a folder may ask of the server that has it open. */
export interface Control {
  readonly storage: Storage
  readonly identity: IdentityControl
  readonly ledger: { check(): Promise<LedgerReport> }
}

/** Everything that can be asked, by the path of the request. */
const ANSWERS: Readonly<Record<string, (control: Control, asked: unknown) => Promise<unknown>>> = {
  'GET /': ({ storage }) => storage.show(),
  'POST /': ({ storage }, asked) => storage.prune(z.parse(Asked, asked) as PruneRequest),
  'GET /ledger': ({ ledger }) => ledger.check(),
  'GET /keys': ({ identity }) => identity.keys(),
  'POST /keys': ({ identity }, asked) => identity.rotate(z.parse(Rotation, asked).purpose),
  'GET /revoked': ({ identity }) => identity.revoked(),
  'POST /revoked': ({ identity }, asked) => identity.revoke(z.parse(RevocationForm, asked)),
  'POST /restored': ({ identity }, asked) => identity.restore(z.parse(RevocationForm, asked)),
}

/**
 * The socket at which the server of a data folder answers the folder's owner. Web pages and other users cannot reach it. It is needed
 * because only one process can open the database. Undefined if the path is too long for a socket.
 */
function controlPath(data: string): string | undefined {
  const folder = resolve(data)
  if (process.platform === 'win32') return `\\\\.\\pipe\\uamp-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`
  const path = resolve(folder, 'control.sock')
  return [path, relative('', path)].find((name) => Buffer.byteLength(name) <= PATH_BYTES)
}

/** Answers the command line of the folder's owner, and returns a function that stops it. The caller must own the folder's lock. */
export function serveControl(data: string, control: Control, onError: (error: unknown) => void): () => void {
  const path = controlPath(data)
  if (path === undefined) return () => undefined
  const server = createServer((request, response) => void answer(control, request, response))
  server.on('error', onError)
  // A killed server leaves its socket behind.
  if (process.platform !== 'win32') rmSync(path, { force: true })
  server.listen(path, () => {
    if (process.platform !== 'win32') chmodSync(path, 0o600)
  })
  server.unref()
  return () => {
    server.closeAllConnections()
    server.close()
  }
}

async function answer(control: Control, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const find = ANSWERS[`${request.method} ${request.url}`]
    if (!find) throw new UampError('not_supported', 'The server that uses this folder is of another version: restart it')
    response.end(JSON.stringify(await find(control, body === '' ? undefined : JSON.parse(body))))
  } catch (thrown) {
    const { code, message } = UampError.from(thrown)
    response.writeHead(500).end(JSON.stringify({ code, message }))
  }
}

/** The storage of a folder that a server has open. Its methods reject if no server answers. */
export function remoteStorage(data: string): Storage {
  return {
    show: async () => (await ask(data, 'GET /')) as StorageReport,
    prune: async (request) => (await ask(data, 'POST /', request)) as Pruned,
  }
}

/** The same for its keys and revocations. */
export function remoteIdentity(data: string): IdentityControl {
  return {
    keys: async () => (await ask(data, 'GET /keys')) as Awaited<ReturnType<IdentityControl['keys']>>,
    rotate: async (purpose) => (await ask(data, 'POST /keys', { purpose })) as Awaited<ReturnType<IdentityControl['rotate']>>,
    revoke: async (what) => (await ask(data, 'POST /revoked', what)) as Awaited<ReturnType<IdentityControl['revoke']>>,
    restore: async (what) => (await ask(data, 'POST /restored', what)) as boolean,
    revoked: async () => (await ask(data, 'GET /revoked')) as Awaited<ReturnType<IdentityControl['revoked']>>,
  }
}

/** Adds up the money of a folder that a server has open. */
export async function remoteLedger(data: string): Promise<LedgerReport> {
  return (await ask(data, 'GET /ledger')) as LedgerReport
}

async function ask(data: string, what: keyof typeof ANSWERS, body?: unknown): Promise<unknown> {
  const [method = '', path = ''] = what.split(' ')
  const socketPath = controlPath(data)
  if (socketPath === undefined)
    throw new UampError('not_supported', `${data} is in use by a server, and its path is too long to reach that server`)
  const { status, text } = await exchange({ socketPath, method, path, body: body === undefined ? undefined : JSON.stringify(body) })
  const result: unknown = JSON.parse(text)
  if (status !== 200) throw new UampError('internal', (result as { message?: string }).message ?? 'The server could not do it')
  return result
}

interface Exchanged {
  readonly socketPath: string
  readonly method: string
  readonly path: string
  readonly body: string | undefined
}

function exchange({ socketPath, method, path, body }: Exchanged): Promise<{ status: number | undefined; text: string }> {
  return new Promise((done, failed) => {
    const sent = httpRequest({ socketPath, method, path }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => done({ status: response.statusCode, text }))
      response.on('error', failed)
    })
    sent.on('error', failed)
    sent.end(body)
  })
}
