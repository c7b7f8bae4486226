/** The official clients, each generation in its own words, as one. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import * as acp012 from 'acp012'
import * as acp19 from 'acp19'
import * as acp24 from 'acp24'
import { createHttpStream } from 'acp24/experimental/http-client'
import { createWebSocketStream } from 'acp24/experimental/ws-client'
import { WebSocket } from 'ws'

export const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

interface Update {
  readonly sessionUpdate: string
  readonly content?: unknown
  readonly [field: string]: unknown
}

export interface Talker {
  readonly updates: Update[]
  readonly permissions: unknown[]
  initialize(): Promise<{ readonly protocolVersion: number }>
  open(): Promise<string>
  load(sessionId: string): Promise<unknown>
  prompt(sessionId: string, text: string): Promise<{ readonly stopReason: string }>
  cancel(sessionId: string): Promise<void>
  /** Resolves when an update of this kind has come, also before. */
  seen(kind: string): Promise<void>
  close(): Promise<void>
}

export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'uamp-acp-'))
  onTestFinished(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  return path
}

const CAPABILITIES = { fs: { readTextFile: true, writeTextFile: true }, terminal: true }
const NEW = { cwd: tmpdir(), mcpServers: [] }

class Heard {
  readonly updates: Update[] = []
  readonly permissions: unknown[] = []
  #waiting: (() => void)[] = []

  update(update: unknown): void {
    this.updates.push(update as Update)
    for (const wake of this.#waiting.splice(0)) wake()
  }

  permit(params: unknown): { outcome: { outcome: 'selected'; optionId: string } } {
    this.permissions.push(params)
    const { options } = params as { options: { kind: string; optionId: string }[] }
    return { outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '' } }
  }

  async seen(kind: string): Promise<void> {
    while (!this.updates.some(({ sessionUpdate }) => sessionUpdate === kind))
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}

/** The program as an IDE starts it. */
function program(data: string) {
  const child = spawn(process.execPath, [MAIN, 'acp', '--data', data], { stdio: ['pipe', 'pipe', 'inherit'], cwd: tmpdir() })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const close = async (): Promise<void> => {
    child.stdin.end()
    await exited
  }
  onTestFinished(close)
  const output = Writable.toWeb(child.stdin) as WritableStream<Uint8Array>
  const input = Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>
  return { output, input, close }
}

function talker24(stream: acp24.Stream, close: () => Promise<void> = async () => undefined): Talker {
  const heard = new Heard()
  const connection = acp24
    .client({ name: 'test' })
    .onRequest('session/request_permission', ({ params }) => heard.permit(params))
    .onNotification('session/update', ({ params }) => heard.update((params as acp24.SessionNotification).update))
    .connect(stream)
  const { agent } = connection
  return {
    updates: heard.updates,
    permissions: heard.permissions,
    initialize: () => agent.request('initialize', { protocolVersion: acp24.PROTOCOL_VERSION, clientCapabilities: CAPABILITIES }),
    open: async () => (await agent.request<{ sessionId: string }>('session/new', NEW)).sessionId,
    load: (sessionId) => agent.request('session/load', { ...NEW, sessionId }),
    prompt: (sessionId, text) => agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }),
    cancel: (sessionId) => agent.notify('session/cancel', { sessionId }),
    seen: (kind) => heard.seen(kind),
    close: async () => {
      connection.close()
      await close()
    },
  }
}

/** 1.x and 0.x have the same words for what is needed here. */
function talkerBefore(sdk: typeof acp19 | typeof acp012, data: string): Talker {
  const heard = new Heard()
  const { output, input, close } = program(data)
  const stream = sdk.ndJsonStream(output, input) as acp012.Stream
  const { ClientSideConnection } = sdk as typeof acp012
  const connection = new ClientSideConnection(
    () => ({
      requestPermission: async (params) => heard.permit(params),
      sessionUpdate: async ({ update }) => heard.update(update),
    }),
    stream,
  )
  return {
    updates: heard.updates,
    permissions: heard.permissions,
    initialize: () => connection.initialize({ protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: CAPABILITIES }),
    open: async () => (await connection.newSession(NEW)).sessionId,
    load: (sessionId) => connection.loadSession({ ...NEW, sessionId }),
    prompt: (sessionId, text) => connection.prompt({ sessionId, prompt: [{ type: 'text', text }] }),
    cancel: (sessionId) => connection.cancel({ sessionId }),
    seen: (kind) => heard.seen(kind),
    close,
  }
}

export type Way = (at: { readonly url: string; readonly data: string }) => Talker

export const WAYS: Readonly<Record<string, Way>> = {
  '2.4 over stdio': ({ data }) => {
    const { output, input, close } = program(data)
    return talker24(acp24.ndJsonStream(output, input), close)
  },
  '2.4 over WebSocket': ({ url }) => talker24(createWebSocketStream(`${url.replace('http', 'ws')}/acp`, { WebSocket: WebSocket as never })),
  '2.4 over HTTP': ({ url }) => talker24(createHttpStream(`${url}/acp`)),
  '1.9 over stdio': ({ data }) => talkerBefore(acp19, data),
  '0.12 over stdio': ({ data }) => talkerBefore(acp012, data),
}
