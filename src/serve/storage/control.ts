import { createHash } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { relative, resolve } from 'node:path'
import * as z from 'zod/mini'
import { UampError } from '../../protocol/errors.ts'
import type { Pruned, PruneRequest, Storage, StorageReport } from './index.ts'

/** The longest socket path that every system accepts. */
const PATH_BYTES = 100

const Asked = z.object({
  principal: z.optional(z.string()),
  before: z.optional(z.number()),
  bytes: z.optional(z.number()),
  dryRun: z.boolean(),
})

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

/** Serves `storage` to `uamp store`, and returns a function that stops it. The caller must own the folder's lock. */
export function serveControl(data: string, storage: Storage, onError: (error: unknown) => void): () => void {
  const path = controlPath(data)
  if (path === undefined) return () => undefined
  const server = createServer((request, response) => void answer(storage, request, response))
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

async function answer(storage: Storage, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const result = request.method === 'GET' ? await storage.show() : await storage.prune(z.parse(Asked, JSON.parse(body)) as PruneRequest)
    response.end(JSON.stringify(result))
  } catch (thrown) {
    const { code, message } = UampError.from(thrown)
    response.writeHead(500).end(JSON.stringify({ code, message }))
  }
}

/** The storage of a folder that a server has open. Its methods reject if no server answers. */
export function remoteStorage(data: string): Storage {
  const call = async (method: 'GET' | 'POST', body?: PruneRequest): Promise<unknown> => {
    const socketPath = controlPath(data)
    if (socketPath === undefined)
      throw new UampError('not_supported', `${data} is in use by a server, and its path is too long to reach that server`)
    const { status, text } = await exchange({ socketPath, method, body: body && JSON.stringify(body) })
    const result = JSON.parse(text) as { code?: string; message?: string }
    if (status !== 200) throw new UampError('internal', result.message ?? 'The server could not do it')
    return result
  }
  return {
    show: async () => (await call('GET')) as StorageReport,
    prune: async (request) => (await call('POST', request)) as Pruned,
  }
}

interface Exchanged {
  readonly socketPath: string
  readonly method: string
  readonly body: string | undefined
}

function exchange({ socketPath, method, body }: Exchanged): Promise<{ status: number | undefined; text: string }> {
  return new Promise((done, failed) => {
    const sent = httpRequest({ socketPath, method, path: '/' }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => done({ status: response.statusCode, text }))
      response.on('error', failed)
    })
    sent.on('error', failed)
    sent.end(body)
  })
}
