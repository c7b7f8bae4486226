// @ts-check
import { EVENTS } from '../lib/dialects.js'
import { answer } from '../lib/process.js'
import { percentile, sleep } from '../lib/stats.js'
import { Tally } from '../lib/tally.js'
import { WsClient } from '../lib/ws-client.js'

/** Deltas at the beginning of an answer that are not looked at: the others are still being asked for. */
const FIRST = 40

/** Notes how long after the delta before each one comes. */
class Gaps extends Tally {
  /** @type {number[]} */
  gaps = []
  #last = 0

  delta() {
    super.delta()
    const now = performance.now()
    if (this.deltas > FIRST) this.gaps.push(now - this.#last)
    this.#last = now
  }
}

/** @type {{ client: WsClient, tally: Gaps }[]} */
let sessions = []
const buffer = Buffer.alloc(256 * 1024)

answer({ open, run, close })

/** @param {{ port: number, count: number }} options */
async function open({ port, count }) {
  sessions = Array.from({ length: count }, () => {
    const tally = new Gaps(EVENTS)
    return { tally, client: new WsClient({ port, buffer, tally }) }
  })
  await Promise.all(sessions.map(({ client }) => client.open()))
}

/** Every session asks once, each at a moment of its own. @param {{ deltas: number, ms: number }} options */
async function run({ deltas, ms }) {
  await Promise.all(
    sessions.map(async ({ client, tally }, i) => {
      tally.gaps = []
      await sleep((i * FIRST * ms) / 2 / sessions.length)
      await client.respond(`/count ${deltas} ${ms}`)
      if (tally.deltas !== deltas) throw new Error(`${tally.deltas} deltas instead of ${deltas}`)
    }),
  )
  const gaps = sessions.flatMap(({ tally }) => tally.gaps)
  return { p50: percentile(gaps, 0.5), p99: percentile(gaps, 0.99), p999: percentile(gaps, 0.999), most: percentile(gaps, 1) }
}

function close() {
  for (const { client } of sessions) client.close()
  sessions = []
}
