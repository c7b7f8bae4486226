import { PassThrough, pipeline, type Readable } from 'node:stream'
import { WebSocket } from 'ws'
import type { Logger } from '../core/ports/transport.ts'
import type { Output } from '../serve/acp-stdio.ts'
import { connectTools } from '../serve/client-tools.ts'
import { UampError } from '../protocol/errors.ts'
import { linesIn } from '../wire/lines.ts'
import { RelayTools } from './relay-tools.ts'

/** Bytes of a message, in either direction. */
const MESSAGE = 32 * 1024 * 1024
/** How long the agent may take to read a message, and to handle messages from before the IDE left. */
const READ_MS = 30_000
const LEAVE_MS = 1_000

export interface RelayOptions {
  readonly url: string
  readonly token: string | undefined
  readonly input: Readable
  readonly output: Output
  readonly log: Logger
  /** How long the agent may take to accept the connection. Default: 10,000. */
  readonly connectMs?: number
}

/**
 * Connects an IDE that can only start programs to an agent that speaks ACP over a WebSocket. Messages pass unchanged, but for MCP
 * servers that only this machine reaches.
 */
export async function relay({ url, token, input, output, log, connectMs = 10_000 }: RelayOptions): Promise<number> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const socket = new WebSocket(url, { headers, maxPayload: MESSAGE, perMessageDeflate: false, handshakeTimeout: connectMs })
  let failure: Error | undefined
  socket.on('error', (error) => (failure ??= error))
  const opened = new Promise<void>((resolve) => socket.once('open', resolve))
  const closed = new Promise<'lost'>((resolve) => socket.once('close', () => resolve('lost')))
  const sending = new Sending(socket)
  const tools = new RelayTools({
    connectTools,
    log,
    toAgent: (text) => sending.add(text),
    toIde: (text) => {
      // A message must be one line on standard output.
      if (output.write(`${text.replaceAll(/[\r\n]+/g, ' ')}\n`)) return
      socket.pause()
      void output.drained().then(() => socket.resume())
    },
  })
  socket.on('message', (data: Buffer) => tools.incoming(data.toString()))
  // Reads ahead, so that the end of the input is noticed while the connection opens.
  const ahead = new PassThrough({ highWaterMark: MESSAGE })
  const left = new Promise<'left'>((resolve) => pipeline(input, ahead, () => resolve('left')))
  const begun = await Promise.race([opened, closed, left])
  if (begun === 'left') {
    socket.terminate()
    return 0
  }
  if (begun === 'lost') {
    throw new UampError('provider_error', `There is no agent at ${url}: ${failure?.message ?? 'it closed the connection'}`)
  }
  const late = left.then(() => new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MS).unref()))
  const end = await Promise.race([pump(ahead, tools, sending), closed, late])
  await tools.close()
  socket.terminate()
  if (end === 'lost') throw new UampError('interrupted', `The connection to ${url} was lost`)
  return 0
}

/** Messages to the agent, one after the other. */
class Sending {
  readonly #socket: WebSocket
  /** Resolves when everything so far is sent. */
  over: Promise<void> = Promise.resolve()

  constructor(socket: WebSocket) {
    this.#socket = socket
  }

  add(text: string): void {
    this.over = this.over.then(async () => {
      const stuck = setTimeout(() => this.#socket.terminate(), READ_MS).unref()
      await new Promise((resolve) => this.#socket.send(text, resolve))
      clearTimeout(stuck)
    })
  }
}

async function pump(input: Readable, tools: RelayTools, sending: Sending): Promise<void> {
  for await (const line of linesIn(input, MESSAGE)) {
    if (line === undefined) continue
    tools.outgoing(line)
    await sending.over
  }
}
