import { request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { AgentPort, Turn } from '../../../src/core/ports/agent.ts'
import { startProxy } from '../../client/proxy.ts'
import { startServer } from '../../support/server.ts'
import { clientOf, collect, user, versions, type Client, type Version } from './clients.ts'

/** How the runs of an agent ended, in the order of their ends, by what the user said. */
class Ends {
  readonly seen = new Map<string, 'aborted' | 'done'>()
  #waiting: (() => void)[] = []

  add(turn: Turn): void {
    this.seen.set(turn.messages.at(-1)?.content ?? '', turn.signal.aborted ? 'aborted' : 'done')
    for (const wake of this.#waiting.splice(0)) wake()
  }

  async of(said: string): Promise<'aborted' | 'done'> {
    for (;;) {
      const end = this.seen.get(said)
      if (end) return end
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}

/** Says `words` words, or goes on until it is stopped; in between it lets others speak. */
function speaker(words = Infinity): { agent: AgentPort; ends: Ends; begun: Promise<void> } {
  const ends = new Ends()
  let begin: () => void = () => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const agent = defineAgent('speaker', async function* (turn) {
    try {
      for (let word = 1; word <= words; word++) {
        yield text(`${word} `)
        begin()
        await new Promise(setImmediate)
      }
    } finally {
      ends.add(turn)
    }
  })
  return { agent, ends, begun }
}

/** Says nothing until it is let. */
function silent(): { agent: AgentPort; ends: Ends; begun: Promise<void>; release: () => void } {
  const ends = new Ends()
  let release: () => void = () => undefined
  let begin: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const agent = defineAgent('silent', async function* (turn) {
    try {
      begin()
      await Promise.race([released, new Promise((_, reject) => turn.signal.addEventListener('abort', reject))])
      yield text('At last')
    } finally {
      ends.add(turn)
    }
  })
  return { agent, ends, begun, release }
}

async function through(version: Version, agent: AgentPort) {
  const server = await startServer([demo(), agent])
  const proxy = await startProxy(server.port)
  onTestFinished(() => proxy.close())
  return { proxy, ...clientOf(version, proxy.url) }
}

/** The same client is answered again. */
async function goesOn({ openai }: Client, times = 1): Promise<void> {
  const lists = await Promise.all(Array.from({ length: times }, () => openai.models.list()))
  for (const { data } of lists) expect(data).toHaveLength(2)
}

describe.each(versions)('openai $version', (version) => {
  test('twenty streams in a row need no more than two connections, and none looks like an abort', async () => {
    const { agent, ends } = speaker(5)
    const { openai, proxy } = await through(version, agent)
    for (let number = 1; number <= 20; number++) {
      const chunks = await collect(await openai.chat.completions.create({ ...user(`${number}`), model: 'speaker', stream: true }))
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('1 2 3 4 5 ')
    }
    expect(proxy.accepted).toBeLessThanOrEqual(2)
    expect([...ends.seen.values()]).toEqual(Array.from({ length: 20 }, () => 'done'))
  })

  test('the same through .stream(), and with the usage at the end', async () => {
    const { agent, ends } = speaker(5)
    const { openai, proxy } = await through(version, agent)
    for (let number = 1; number <= 20; number++) {
      const request = { ...user(`${number}`), model: 'speaker', stream_options: { include_usage: true } }
      expect(await openai.chat.completions.stream(request).finalContent()).toBe('1 2 3 4 5 ')
    }
    expect(proxy.accepted).toBeLessThanOrEqual(2)
    expect([...ends.seen.values()]).toEqual(Array.from({ length: 20 }, () => 'done'))
  })

  const leave: [how: string, go: (client: Client, begun: Promise<void>) => Promise<unknown>][] = [
    [
      'breaks out of the loop',
      async ({ openai }) => {
        for await (const chunk of await openai.chat.completions.create({ ...user('Hi'), model: 'speaker', stream: true })) {
          if (chunk.choices[0]?.delta.content) break
        }
      },
    ],
    [
      'aborts the stream',
      async ({ openai }) => {
        const stream = await openai.chat.completions.create({ ...user('Hi'), model: 'speaker', stream: true })
        for await (const chunk of stream) if (chunk.choices[0]?.delta.content) stream.controller.abort()
      },
    ],
    [
      'aborts .stream()',
      async ({ openai }) => {
        const stream = openai.chat.completions.stream({ ...user('Hi'), model: 'speaker' })
        stream.once('content', () => stream.abort())
        await expect(stream.done()).rejects.toBeInstanceOf(version.OpenAI.APIUserAbortError)
      },
    ],
    [
      'aborts a signal while it waits for the whole answer',
      async ({ openai }, begun) => {
        const leaving = new AbortController()
        const whole = openai.chat.completions.create({ ...user('Hi'), model: 'speaker' }, { signal: leaving.signal })
        const refused = expect(whole).rejects.toBeInstanceOf(version.OpenAI.APIUserAbortError)
        await begun
        leaving.abort()
        await refused
      },
    ],
  ]
  test.each(leave)('a client that %s stops the agent', async (_, go) => {
    const { agent, ends, begun } = speaker()
    const { url } = await startServer([demo(), agent])
    const client = clientOf(version, url)
    await go(client, begun)
    expect(await ends.of('Hi')).toBe('aborted')
    await goesOn(client)
  })

  test('a client that leaves while the agent is still silent stops it', async () => {
    const { agent, ends, begun } = silent()
    const { url } = await startServer([demo(), agent])
    const client = clientOf(version, url)
    const { openai } = client
    const leaving = new AbortController()
    const asked = openai.chat.completions.create({ ...user('Hi'), model: 'silent', stream: true }, { signal: leaving.signal })
    const refused = expect(asked).rejects.toBeInstanceOf(version.OpenAI.APIUserAbortError)
    await begun
    leaving.abort()
    await refused
    expect(await ends.of('Hi')).toBe('aborted')
    await goesOn(client)
  })

  test('fifty at once, half of them cut: each answer belongs to its question, and each cut one has ended', async () => {
    const ends = new Ends()
    const agent = defineAgent('speaker', async function* (turn) {
      const said = turn.messages.map(({ content }) => content).join('|')
      const cut = said.includes('cut')
      try {
        for (let n = 0; cut || n < 20; n++) {
          yield text(n === 0 ? said : '.')
          await new Promise(setImmediate)
        }
      } finally {
        ends.add(turn)
      }
    })
    const { url } = await startServer([demo(), agent])
    const client = clientOf(version, url)
    const { openai } = client
    const answer = async (number: number): Promise<void> => {
      const kind = number % 2 === 0 ? 'cut' : 'whole'
      const history = [`first ${number}`, `second ${number}`, `${kind} ${number}`]
      const [first = '', second = '', last = ''] = history
      const stream = await openai.chat.completions.create({
        model: 'speaker',
        stream: true,
        messages: [
          { role: 'user', content: first },
          { role: 'assistant', content: second },
          { role: 'user', content: last },
        ],
      })
      let heard = ''
      for await (const { choices } of stream) {
        heard += choices[0]?.delta.content ?? ''
        if (kind === 'cut' && heard.length > history.join('|').length + 2) break
      }
      expect(heard.replace(/\.+$/, '')).toBe(history.join('|'))
      if (kind === 'whole') expect(heard).toBe(`${history.join('|')}${'.'.repeat(19)}`)
      expect(await ends.of(last)).toBe(kind === 'cut' ? 'aborted' : 'done')
    }
    await Promise.all(Array.from({ length: 50 }, (_, number) => answer(number)))
    expect(ends.seen.size).toBe(50)
    await goesOn(client, 50)
  })
})

test('silence before the first word: heartbeats go out, and the answer arrives', async () => {
  const { agent, release } = silent()
  // What is silent is looked for five times in the shortest of the waiting times.
  const { url } = await startServer([demo(), agent], { limits: { heartbeatMs: 50, pongTimeoutMs: 100 } })
  const request = { ...user('Hi'), model: 'silent' }
  const answers = versions.flatMap((version) => {
    const { openai } = clientOf(version, url)
    const whole = openai.chat.completions.create(request).then(({ choices }) => choices[0]?.message.content)
    return [openai.chat.completions.stream(request).finalContent(), whole]
  })
  const raw = heartbeats(`${url}/v1/chat/completions`, { ...request, stream: true })
  await raw.seen(3)
  release()
  expect(await Promise.all(answers)).toEqual(versions.flatMap(() => ['At last', 'At last']))
  expect(await raw.body).toMatch(/^(: ?[^\n]*\n\n){3,}data: \{[^]*At last[^]*data: \[DONE\]\n\n$/)
})

/** A stream without a client of its own, to see the comments that clients pass over. */
function heartbeats(url: string, body: object): { seen(count: number): Promise<void>; body: Promise<string> } {
  let heard = ''
  let wake: () => void = () => undefined
  const whole = new Promise<string>((resolve, reject) => {
    const asked = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } }, (response) => {
      response.setEncoding('utf8').on('data', (piece: string) => {
        heard += piece
        wake()
      })
      response.on('end', () => resolve(heard))
    })
    asked.on('error', reject)
    asked.end(JSON.stringify(body))
  })
  const seen = async (count: number): Promise<void> => {
    while ((heard.match(/^:/gm)?.length ?? 0) < count) await new Promise<void>((resolve) => (wake = resolve))
  }
  return { seen, body: whole }
}
