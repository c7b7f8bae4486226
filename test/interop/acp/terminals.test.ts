import { spawn, type ChildProcess } from 'node:child_process'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import * as acp24 from 'acp24'
import { createHttpStream } from 'acp24/experimental/http-client'
import { createWebSocketStream } from 'acp24/experimental/ws-client'
import { expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { remoteAcp } from '../../../src/remotes/acp/index.ts'
import { AGENT, isAlive } from '../../remotes/acp/started.ts'
import { startServer } from '../../support/server.ts'
import { verifies } from '../../support/verifies.ts'
import { folder, MAIN } from './clients.ts'

interface Place {
  /** Where the agent works, and where the editor does. */
  readonly agents: string
  readonly project: string
}

async function served({ agents }: Place): Promise<string> {
  const agent = remoteAcp({ name: 'coder', command: process.execPath, args: [AGENT], folder: agents })
  onTestFinished(() => agent.close())
  return (await startServer(agent)).url
}

/** As an IDE does it: the program, with the agent in its configuration. */
async function started({ agents }: Place): Promise<acp24.Stream> {
  const home = await folder()
  const acp = { command: process.execPath, args: [AGENT], folder: agents }
  await writeFile(join(home, 'uamp.config.json'), JSON.stringify({ agents: [{ name: 'coder', remote: { acp } }] }))
  const args = [MAIN, 'acp', join(home, 'uamp.config.json'), '--data', join(home, 'data')]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'], cwd: home })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  onTestFinished(async () => {
    child.stdin.end()
    await exited
  })
  return acp24.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>)
}

const WAYS: Readonly<Record<string, (place: Place) => Promise<acp24.Stream>>> = {
  stdio: started,
  WebSocket: async (place) =>
    createWebSocketStream(`${(await served(place)).replace('http', 'ws')}/acp`, { WebSocket: WebSocket as never }),
  HTTP: async (place) => createHttpStream(`${await served(place)}/acp`),
}

/** Terminals as an editor has them: real processes. */
class Terminals {
  readonly made: {
    readonly child: ChildProcess
    readonly exit: Promise<{ exitCode: number | null; signal: string | null }>
    output: string
  }[] = []

  create({ command, args = [], cwd, env = [] }: acp24.CreateTerminalRequest): { terminalId: string } {
    if (command === 'forbidden') throw new acp24.RequestError(-32000, 'The user does not allow this command')
    const given = Object.fromEntries(env.map(({ name, value }) => [name, value]))
    const child = spawn(command, args, { cwd: cwd ?? undefined, env: { PATH: process.env['PATH'], ...given } })
    const exit = new Promise<{ exitCode: number | null; signal: string | null }>((resolve) => {
      child.once('close', (exitCode, signal) => resolve({ exitCode, signal }))
    })
    const terminal = { child, exit, output: '' }
    child.stdout.on('data', (data: Buffer) => (terminal.output += data.toString()))
    return { terminalId: `t${this.made.push(terminal) - 1}` }
  }

  find(params: unknown) {
    const terminal = this.made[Number((params as { terminalId: string }).terminalId.slice(1))]
    if (!terminal) throw acp24.RequestError.resourceNotFound()
    return terminal
  }
}

for (const [name, way] of Object.entries(WAYS)) {
  verifies('acp-remote.editor-terminal', `the official client runs what an agent behind us wants to run: ${name}`, async () => {
    const place = { agents: await realpath(await folder()), project: await realpath(await folder()) }
    await mkdir(join(place.project, 'src'))
    const terminals = new Terminals()
    let text = ''
    const connection = acp24
      .client({ name: 'editor' })
      .onNotification('session/update', ({ params: { update } }) => {
        if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text') text += update.content.text
      })
      .onRequest('terminal/create', ({ params }) => terminals.create(params))
      .onRequest('terminal/output', ({ params }) => ({ output: terminals.find(params).output, truncated: false }))
      .onRequest('terminal/wait_for_exit', ({ params }) => terminals.find(params).exit)
      .onRequest('terminal/kill', ({ params }) => void terminals.find(params).child.kill('SIGKILL'))
      .onRequest('terminal/release', ({ params }) => void terminals.find(params).child.kill('SIGKILL'))
      .connect(await way(place))
    onTestFinished(() => connection.close())
    const { agent } = connection
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: { terminal: true } })
    const { sessionId } = await agent.request('session/new', { cwd: place.project, mcpServers: [] })
    const say = (said: string) => agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: said }] })

    const here = {
      command: 'sh',
      args: ['-c', 'pwd; echo "$A"; exit 4'],
      env: [{ name: 'A', value: 'b c' }],
      cwd: join(place.agents, 'src'),
    }
    expect(await say(`run ${JSON.stringify(here)}`)).toMatchObject({ stopReason: 'end_turn' })
    await expect.poll(() => text).toContain('"after":-32002')
    expect(JSON.parse(text)).toMatchObject({
      exit: { exitCode: 4, signal: null },
      shown: { output: `${join(place.project, 'src')}\nb c\n`, truncated: false },
    })

    text = ''
    const killed = [['terminal/create', { command: 'sleep', args: ['1000'] }], ['terminal/kill', { terminalId: '$' }], ['terminal/wait_for_exit', { terminalId: '$' }]] // prettier-ignore
    await say(`ask ${JSON.stringify([...killed, ['terminal/create', { command: 'forbidden' }]])}`)
    await expect.poll(() => text).toContain(']')
    const [, , exit, refused] = JSON.parse(text) as unknown[]
    expect(exit).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(refused).toMatchObject({ code: -32000, message: 'The user does not allow this command' })

    const running = say('run {"command":"sleep","args":["1000"]}')
    await expect.poll(() => terminals.made.length).toBe(3)
    const { pid = 0 } = terminals.made[2]?.child ?? {}
    expect(isAlive(pid)).toBe(true)
    await agent.notify('session/cancel', { sessionId })
    expect(await running).toMatchObject({ stopReason: 'cancelled' })
    await expect.poll(() => isAlive(pid)).toBe(false)
  })
}
