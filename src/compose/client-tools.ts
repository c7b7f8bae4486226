import { Readable } from 'node:stream'
import type { GuardedHttp } from '../core/ports/http.ts'
import { UampError } from '../protocol/errors.ts'
import type { McpServer } from '../skills/mcp/index.ts'
import type { ConnectTools } from '../transports/acp/index.ts'

/** How long a client's server may take to start: an IDE waits for it. */
const CONNECT_MS = 15_000
/** Until an answer begins, and between two pieces of it: a stream of events may rest. */
const TIMEOUTS = { firstByteMs: 60_000, idleMs: 10 * 60_000 }

/** MCP servers that clients of ACP bring. */
export const connectTools: ConnectTools = async (given, { log, local, outbound, signal }) => {
  const { mcpSkill } = await import('../skills/mcp/index.ts')
  const server = serverOf(given, local ? undefined : guardedFetch(outbound))
  return mcpSkill({ name: given.name, server, log, connectMs: CONNECT_MS, signal })
}

function serverOf(given: Parameters<ConnectTools>[0], guarded: typeof fetch | undefined): McpServer {
  const table = (pairs: readonly { name: string; value: string }[]) => Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
  if ('command' in given) return { command: given.command, args: given.args, env: table(given.env) }
  return { url: given.url, headers: table(given.headers), ...(guarded && { fetch: guarded }) }
}

/** `fetch` that calls nothing on this machine or in its network. */
function guardedFetch(outbound: GuardedHttp | undefined): typeof fetch {
  if (!outbound) throw new UampError('not_supported', 'This runtime cannot call addresses that clients name')
  return async (input, init = {}) => {
    const request = new Request(input, init)
    const { status, headers, body } = await outbound.request({
      url: request.url,
      method: request.method as 'GET' | 'POST' | 'DELETE',
      headers: Object.fromEntries(request.headers),
      ...(request.body && { body: await request.text() }),
      signal: init.signal ?? request.signal,
      timeouts: TIMEOUTS,
    })
    const empty = status === 204 || status === 202 || status === 304
    if (empty) for await (const _ of body);
    return new Response(empty ? null : (Readable.toWeb(Readable.from(body)) as ReadableStream), {
      status,
      headers: [...headers].map(([name, value]): [string, string] => [name, value]),
    })
  }
}
