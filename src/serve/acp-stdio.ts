import type { Readable } from 'node:stream'
import { staticTokens } from '../auth/static-tokens.ts'
import { anybody } from '../core/basics/principal.ts'
import { UampError } from '../protocol/errors.ts'
import { hostFor } from '../server/offered.ts'
import { AcpConnection } from '../transports/acp/index.ts'
import { errorText, readMessage, RPC, RpcError } from '../wire/json-rpc.ts'
import { linesIn } from '../wire/lines.ts'
import { connectTools } from './client-tools.ts'
import type { OpenGateway } from './gateway.ts'

/** Bytes of one message, which may hold pictures. A longer one is refused, and the next one is read. */
const LINE = 32 * 1024 * 1024

/** Standard output, which carries nothing but the protocol. */
export interface Output {
  /** False when it is full. */
  write(text: string): boolean
  drained(): Promise<void>
}

export interface AcpStdioOptions {
  /** Closed when the input has ended. */
  readonly open: OpenGateway
  /** The agent that the IDE talks to. */
  readonly agent: string
  readonly version: string
  readonly input: Readable
  readonly output: Output
}

/** Speaks ACP over standard input and output, one message a line, until the input ends. */
export async function acpOverStdio({ open, agent, version, input, output }: AcpStdioOptions): Promise<void> {
  const { gateway, agents, log, secrets, http, metrics: meter } = open
  const access = staticTokens({ tokens: {}, anonymous: true })
  const principal = await anybody(access)
  if (!principal) throw new UampError('internal', 'The IDE was not admitted')
  const connection = new AcpConnection({
    host: hostFor({ gateway, agents, log, secrets, http, meter, newId: () => crypto.randomUUID() }, ['acp']),
    caller: { agent, root: true, principal, access },
    // JSON text contains no line break.
    send: async (frames) => (output.write(`${frames.join('\n')}\n`) ? undefined : output.drained()),
    local: true,
    connectTools,
    version,
  })
  try {
    await open.started
    for await (const line of linesIn(input, LINE)) {
      if (line !== undefined) void connection.receive(readMessage(line))
      else output.write(`${errorText(null, new RpcError(RPC.invalidRequest, `A message must be at most ${LINE} bytes long`))}\n`)
    }
  } finally {
    await connection.close()
    await open.close(0)
  }
}
