import { PassThrough } from 'node:stream'
import { acpOverStdio } from '../../../src/serve/acp-stdio.ts'
import { openGateway } from '../../../src/serve/gateway.ts'
import { Line, sse, Told, type Wire } from '../../support/raw.ts'
import { Hearing, Lost, STREAMED_STORED, type Driver, type Stage } from '../driver.ts'
import { sayer, type Said } from '../said.ts'

const PROMPT_ID = 3

const INITIALIZE = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } }
const NEW_SESSION = { jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/project', mcpServers: [] } }
const prompt = (sessionId: string, text: string) => ({
  jsonrpc: '2.0',
  id: PROMPT_ID,
  method: 'session/prompt',
  params: { sessionId, prompt: [{ type: 'text', text }] },
})

/** Takes one message. Gives what was said when it was the answer to the prompt. */
function heardIn(hearing: Hearing, message: Wire): Said | undefined {
  const { id, result, error, params } = message
  if (error) throw new Told(String(error.data?.code ?? error.code), JSON.stringify(error))
  if (params?.update?.sessionUpdate === 'agent_message_chunk') {
    const { content } = params.update
    if (content.type === 'image') hearing.media = content.data
    else hearing.add(content.text)
  }
  if (id !== PROMPT_ID) return undefined
  if (result.stopReason !== 'end_turn') throw new Told(result.stopReason)
  return hearing.said()
}

/** The whole exchange over whatever carries messages. */
async function exchange(stage: Stage, send: (message: object) => void, messages: AsyncIterable<Wire>): Promise<Said> {
  const hearing = new Hearing()
  send(INITIALIZE)
  for await (const message of messages) {
    if (message.id === 1) send(NEW_SESSION)
    if (message.id === 2 && message.result) send(prompt(message.result.sessionId, stage.prompt))
    const said = heardIn(hearing, message)
    if (said) return said
  }
  throw new Lost('no end')
}

export const acpWebSocket: Driver = {
  name: 'ACP, WebSocket',
  choices: STREAMED_STORED,
  async ask(stage) {
    const line = await Line.open(`${await stage.url()}/acp`, stage)
    return exchange(stage, (message) => line.send(message), line.messages())
  },
}

export const acpHttp: Driver = {
  name: 'ACP, HTTP',
  choices: STREAMED_STORED,
  // A reader that has stopped may let so much wait before it is known that it stands still.
  limit: ({ reader }) => (reader === 'stops' ? { code: 'rate_limited', why: '16 Mi characters unread' } : undefined),
  async ask(stage) {
    const url = `${await stage.url()}/acp`
    const opened = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(INITIALIZE) })
    await opened.text()
    const connection = { 'acp-connection-id': opened.headers.get('acp-connection-id') ?? '' }
    const send = async (message: object, session?: string): Promise<void> => {
      const headers = { 'content-type': 'application/json', ...connection, ...(session !== undefined && { 'acp-session-id': session }) }
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message) })
      if (!response.ok) throw new Told(String(response.status), await response.text())
    }
    const own = sse(url, undefined, { headers: connection })
    const first = own.next()
    await send(NEW_SESSION)
    const { value } = await first
    const { sessionId } = JSON.parse(value?.data ?? '').result
    const stream = sse(url, undefined, { headers: { ...connection, 'acp-session-id': sessionId } })
    // Where the connection is given up, its own stream says why.
    const ends = { own: own.next().then((step) => ({ step, of: 'own' as const })), session: next() }
    ends.session.catch(() => undefined)
    ends.own.catch(() => undefined)
    await send(prompt(sessionId, stage.prompt), sessionId)
    const hearing = new Hearing()
    for (;;) {
      const { step, of } = await Promise.race([ends.session, ends.own])
      if (step.done) throw await reason(of === 'own' ? undefined : ends.own)
      const said = heardIn(hearing, JSON.parse(step.value.data))
      if (said) {
        void stream.return()
        return said
      }
      if (of === 'session') ends.session = next()
    }

    function next() {
      return stream.next().then((step) => ({ step, of: 'session' as const }))
    }
  },
}

/** What the connection's own stream says when that of the session has ended. */
async function reason(own: Promise<{ step: IteratorResult<{ data: string }, void> }> | undefined): Promise<Error> {
  const told =
    own && (await Promise.race([own, new Promise<undefined>((resolve) => setTimeout(resolve, 500, undefined))]).catch(() => undefined))
  if (!told || told.step.done) return new Lost('the stream ended')
  const { error } = JSON.parse(told.step.value.data) as Wire
  return error ? new Told(String(error.data?.code ?? error.code), JSON.stringify(error)) : new Lost('the stream ended')
}

export const acpStdio: Driver = {
  name: 'ACP, stdio',
  choices: STREAMED_STORED,
  async ask(stage) {
    const input = new PassThrough()
    const output = pipe(stage)
    const over = acpOverStdio({
      open: openGateway({ agents: [sayer], data: 'memory', log: () => undefined }),
      agent: 'sayer',
      version: '1',
      input,
      output,
    })
    stage.after(async () => {
      input.end()
      await over
    })
    return exchange(stage, (message) => void input.write(`${JSON.stringify(message)}\n`), output.messages())
  },
}

/** Bytes that a pipe holds. */
const PIPE = 64 * 1024

/** Standard output as a client reads it: once the pipe is full, whoever writes waits. */
function pipe({ pace }: Stage) {
  let queue: string[] = []
  let wake: (() => void) | undefined
  let free: Promise<void> = Promise.resolve()
  let held = 0
  return {
    write(text: string): boolean {
      queue.push(text)
      wake?.()
      held += text.length
      if (held < PIPE) return true
      const ms = pace.waitAfter(held)
      held = 0
      if (ms === 0) return true
      free = new Promise((resolve) => setTimeout(resolve, ms))
      return false
    },
    drained: () => free,
    async *messages(): AsyncGenerator<Wire, void> {
      for (let rest: string[] = []; ;) {
        const texts = queue
        queue = []
        for (const text of texts) {
          const lines = text.split('\n')
          const last = lines.pop() ?? ''
          for (const [index, line] of lines.entries()) yield JSON.parse(index === 0 ? [...rest, line].join('') : line)
          rest = lines.length > 0 ? [last] : [...rest, last]
        }
        if (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}
