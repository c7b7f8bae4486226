import type { Readable } from 'node:stream'
import { staticTokens } from '../auth/static-tokens.ts'
import { AgentRegistry } from '../core/agent-registry.ts'
import { createGateway } from '../core/gateway.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Store } from '../core/ports/store.ts'
import type { Log } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { Metrics } from '../server/metrics.ts'
import { nodeHttp } from '../server/node/http-client.ts'
import { AcpConnection, type Link } from '../transports/acp/index.ts'
import { errorText, readMessage, RPC, RpcError } from '../wire/json-rpc.ts'
import { lineReader } from '../wire/lines.ts'
import { connectTools } from './client-tools.ts'

/** Bytes of one message: a prompt may hold pictures. A longer one is refused, and the next one is read. */
const LINE = 32 * 1024 * 1024

/** Standard output, which carries nothing but the protocol. */
export interface Output {
  /** False: it is full. */
  write(text: string): boolean
  drained(): Promise<void>
}

export interface AcpStdioOptions {
  readonly agents: readonly AgentPort[]
  /** The one that is talked to. */
  readonly agent: string
  readonly store: Store
  readonly log: Log
  readonly version: string
  readonly input: Readable
  readonly output: Output
}

/** ACP over standard input and output, until the input ends. */
export async function acpOverStdio({ agents: given, agent, store, log, version, input, output }: AcpStdioOptions): Promise<void> {
  const agents = new AgentRegistry()
  for (const each of given) agents.add(each)
  const http = nodeHttp()
  const meter = new Metrics()
  const gateway = createGateway({ agents, store, log, meter, http })
  meter.gauges = gateway
  const access = staticTokens({ tokens: {}, anonymous: true })
  const principal = await access.authenticate({})
  if (!principal) throw new UampError('internal', 'Nobody is let in')
  const closing = new AbortController()
  const newId = () => crypto.randomUUID()
  const host = {
    gateway,
    store,
    agents,
    log,
    meter,
    now: Date.now,
    newId,
    publicUrl: () => '',
    outbound: undefined,
    closing: closing.signal,
  }
  const caller = { agent, root: true, principal, access }
  const connection = new AcpConnection({ host, link: stdioLink(output), caller, local: true, connectTools, version })
  try {
    await gateway.start()
    const lines = lineReader(LINE)
    const take = (texts: readonly (string | undefined)[]): void => {
      for (const text of texts) receive(connection, output, text)
    }
    for await (const chunk of input) take(lines(chunk as Uint8Array))
    take(lines(undefined))
  } catch (error) {
    // Who stops us by a signal closes the input.
    if (!input.destroyed) throw error
  } finally {
    closing.abort()
    await connection.close()
    await gateway.drain(0)
    await gateway.close()
    http.close()
    await store.close()
  }
}

function receive(connection: AcpConnection, output: Output, text: string | undefined): void {
  if (text === undefined)
    output.write(`${errorText(null, new RpcError(RPC.invalidRequest, `A message must be at most ${LINE} bytes long`))}\n`)
  else if (text.trim() !== '') connection.receive(readMessage(text))
}

/** One message a line. JSON has no line break in it. */
function stdioLink(output: Output): Link {
  return {
    async send(frames) {
      if (frames.length > 0 && !output.write(`${frames.join('\n')}\n`)) await output.drained()
    },
    listens: () => true,
  }
}
