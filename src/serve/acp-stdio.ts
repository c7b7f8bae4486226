import type { Readable } from 'node:stream'
import { staticTokens } from '../auth/static-tokens.ts'
import { AgentRegistry } from '../core/engine/agent-registry.ts'
import { checkKey } from '../core/durable/check-key.ts'
import { createGateway } from '../core/engine/gateway.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Keys } from '../core/ports/keys.ts'
import type { Store } from '../core/ports/store.ts'
import type { Logger } from '../core/ports/transport.ts'
import { redactedLog } from '../core/secrets/redaction.ts'
import { Secrets, secretsOf } from '../core/secrets/secrets.ts'
import { UampError } from '../protocol/errors.ts'
import { Metrics } from '../server/metrics.ts'
import { guardedHttp } from '../server/node/guarded-http.ts'
import { nodeHttp } from '../server/node/http-client.ts'
import { AcpConnection } from '../transports/acp/index.ts'
import { errorText, readMessage, RPC, RpcError } from '../wire/json-rpc.ts'
import { linesIn } from '../wire/lines.ts'
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
  readonly keys: Keys
  readonly log: Logger
  readonly version: string
  readonly input: Readable
  readonly output: Output
}

/** ACP over standard input and output, one message a line, until the input ends. */
export async function acpOverStdio({
  agents: given,
  agent,
  store,
  keys,
  version,
  input,
  output,
  ...options
}: AcpStdioOptions): Promise<void> {
  const secrets = new Secrets(secretsOf({ program: { env: process.env } }))
  const log = redactedLog(options.log, secrets)
  const agents = new AgentRegistry()
  agents.onChange((name) => secrets.add(agents.get(name)?.secrets ?? []))
  for (const each of given) agents.add(each)
  const guarded = guardedHttp()
  const http = { ...nodeHttp(), guarded }
  const gateway = createGateway({ agents, store, log, http, secrets, keys })
  const access = staticTokens({ tokens: {}, anonymous: true })
  const principal = await access.authenticate({})
  if (!principal) throw new UampError('internal', 'Nobody is let in')
  const connection = new AcpConnection({
    host: { gateway, agents, log, secrets, http, meter: new Metrics(), newId: () => crypto.randomUUID() },
    caller: { agent, root: true, principal, access },
    // JSON has no line break in it.
    send: async (frames) => (output.write(`${frames.join('\n')}\n`) ? undefined : output.drained()),
    local: true,
    connectTools,
    version,
  })
  try {
    await checkKey(store, keys)
    await gateway.start()
    for await (const line of linesIn(input, LINE)) {
      if (line !== undefined) void connection.receive(readMessage(line))
      else output.write(`${errorText(null, new RpcError(RPC.invalidRequest, `A message must be at most ${LINE} bytes long`))}\n`)
    }
  } finally {
    await connection.close()
    await gateway.drain(0)
    await gateway.close()
    http.close()
    guarded.close()
    await store.close()
  }
}
