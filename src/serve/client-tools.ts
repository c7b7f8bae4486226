import { Bucket } from '../core/basics/bucket.ts'
import type { GuardedHttp } from '../core/ports/http.ts'
import { UampError } from '../protocol/errors.ts'
import type { McpBounds } from '../skills/mcp/http-fetch.ts'
import type { McpServer } from '../skills/mcp/index.ts'
import type { ConnectTools } from '../transports/acp/index.ts'

/** How long a client's server may take to start, because an IDE waits for it. */
const CONNECT_MS = 15_000
/** An answer of a client's server may be as long as a message of the client. */
const ANSWER_BYTES = 4 * 1024 * 1024
const ANSWER_MS = 10 * 60_000
/** Bounds of all its answers together: at once, and per second. */
const BURST_BYTES = 16 * 1024 * 1024
const BYTES_PER_SECOND = 256 * 1024
/** The most characters of its address and headers, because its errors are searched for them. */
const SHOWN = 16 * 1024

/** Connects to MCP servers that clients of ACP bring. */
export const connectTools: ConnectTools = async (given, { log, local, outbound, signal }) => {
  const { mcpSkill } = await import('../skills/mcp/index.ts')
  const server = serverOf(given, local ? undefined : through(outbound))
  return mcpSkill({ name: given.name, server, log, connectMs: CONNECT_MS, signal })
}

function serverOf(given: Parameters<ConnectTools>[0], guarded: ReturnType<typeof through> | undefined): McpServer {
  const table = (pairs: readonly { name: string; value: string }[]) => Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
  if ('command' in given) return { command: given.command, args: given.args, env: table(given.env) }
  const shown = given.headers.reduce((sum, { name, value }) => sum + name.length + value.length, given.url.length)
  if (guarded && shown > SHOWN)
    throw new UampError('too_large', `The address and headers of an MCP server may have at most ${SHOWN} characters`)
  return { url: given.url, headers: table(given.headers), ...(guarded && { through: guarded }) }
}

/** Calls nothing on this machine or in its network. */
function through(outbound: GuardedHttp | undefined): { http: GuardedHttp; bounds: McpBounds } {
  if (!outbound) throw new UampError('not_supported', 'This runtime cannot call addresses that clients name')
  const bytes = new Bucket({ perSecond: BYTES_PER_SECOND, burst: BURST_BYTES, monotonic: () => performance.now() })
  return { http: outbound, bounds: { answerBytes: ANSWER_BYTES, answerMs: ANSWER_MS, bytes } }
}
