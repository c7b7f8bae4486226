// @ts-check
import { answer } from '../lib/process.js'
import { percentile, sleep } from '../lib/stats.js'
import { message } from '../lib/tally.js'
import { WsClient } from '../lib/ws-client.js'

/** How many connections are being opened at a time before the storm: a listen queue is finite. In it, all of them are. */
const STEP = 100
const RETRY_MS = 50
const PATIENCE_MS = 60_000

const buffer = Buffer.alloc(256 * 1024)

/** A session that survives its socket. */
class Survivor {
  /** @type {number[]} what each delta was numbered, and each is counted once */
  numbers = []
  #port
  #client

  /** @param {number} port */
  constructor(port) {
    this.#port = port
    this.#client = this.#socket()
  }

  async open() {
    await this.#client.open()
    this.sessionId = this.#client.sessionId
  }

  /** Resolves at the end of the answer, unless the socket goes before. @param {string} text */
  ask(text) {
    return this.#client.respond(text)
  }

  drop() {
    this.#gather()
    this.#client.close()
  }

  /** Tries until a delta comes again, and gives a promise of the end. */
  async comeBack() {
    for (const began = performance.now(); ;) {
      const client = this.#socket()
      try {
        await client.open({ session: false })
        const resume = { session_id: this.sessionId, after: this.numbers.at(-1) ?? 0 }
        const done = client.tally.until('response.done')
        const heard = new Promise((resolve) => (client.tally.reached = () => resolve(undefined)))
        client.tally.mark = 1
        client.send(message('session.create', { uamp_version: '1.0', session: { modalities: ['text'], extensions: { uamp: { resume } } } }))
        await Promise.race([heard, done])
        this.#client = client
        return { done: done.then(() => this.#gather()) }
      } catch (error) {
        client.close()
        if (performance.now() - began > PATIENCE_MS) throw error
        await sleep(RETRY_MS)
      }
    }
  }

  #gather() {
    for (const { seq } of this.#client.tally.seen) this.numbers.push(seq)
    this.#client.tally.seen = []
  }

  #socket() {
    const client = new WsClient({ port: this.#port, buffer })
    client.tally.check = true
    return client
  }
}

answer({ storm })

/**
 * Everybody hears an answer; in the middle of it all sockets go at once, and everybody comes back at once.
 *
 * @param {{ port: number, clients: number, deltas: number, ms: number }} options
 */
async function storm({ port, clients, deltas, ms }) {
  /** @type {Survivor[]} */
  const survivors = []
  while (survivors.length < clients) {
    const step = Array.from({ length: Math.min(STEP, clients - survivors.length) }, () => new Survivor(port))
    await Promise.all(step.map((survivor) => survivor.open()))
    survivors.push(...step)
  }
  for (const survivor of survivors) survivor.ask(`/count ${deltas} ${ms}`).catch(() => undefined)
  await sleep((deltas * ms) / 3)
  for (const survivor of survivors) survivor.drop()
  const began = performance.now()
  /** @type {number[]} */
  const times = []
  await Promise.all(
    survivors.map(async (survivor) => {
      const { done } = await survivor.comeBack()
      times.push(performance.now() - began)
      await done
    }),
  )
  const heard = survivors.reduce((sum, { numbers }) => sum + new Set(numbers).size, 0)
  const twice = survivors.reduce((sum, { numbers }) => sum + numbers.length - new Set(numbers).size, 0)
  for (const survivor of survivors) survivor.drop()
  return { share: heard / (clients * deltas), twice, p50: percentile(times, 0.5), all: Math.max(...times) }
}
