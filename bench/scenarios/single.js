// @ts-check
import { number, thousands } from '../lib/table.js'
import { singleTarget } from '../lib/targets.js'
import { taskList } from './a2a.js'
import { cancel } from './cancel.js'
import { endurance } from './endurance.js'
import { gaps } from './gaps.js'
import { fileGrowth } from './growth.js'
import { memory, underLoad } from './memory.js'
import { slowReaders } from './slow-readers.js'
import { startUp } from './start.js'
import { reconnectStorm } from './storm.js'

/** @typedef {{ quick: boolean, tell: (text: string) => void }} Options */
/** @typedef {{ notes: string[], targets: import('../lib/targets.js').Target[] }} Outcome */

const kilobytes = (/** @type {number} */ bytes) => `${(bytes / 1000).toFixed(1)} kB`
const megabytes = (/** @type {number} */ bytes) => `${thousands(bytes / 1e6)} MB`

/** What is not a rate: each gives sentences, and what is held against a target. @type {Record<string, (options: Options) => Promise<Outcome>>} */
export const SINGLE = {
  'a2a list, memory': (options) => list('memory', options),
  'a2a list, sqlite': (options) => list('sqlite', options),
  gaps: async ({ quick, tell }) => {
    const sizes = quick ? { sessions: 50, seconds: 2, rounds: 1, bytes: 2e7 } : { sessions: 200, seconds: 8, rounds: 3, bytes: 1e9 }
    const measured = await gaps({ ...sizes, tell })
    return {
      notes: measured.map(
        ({ beside, ours, bare, most, note }) =>
          `gap between deltas of ${sizes.sessions} sessions, ${beside}: p99.9 ${number(ours, 1)} ms, at most ${number(most, 0)} ms; ` +
          `bare p99.9 ${number(bare, 1)} ms (last round: ${note})`,
      ),
      targets: measured.map(({ beside, ours }) => singleTarget(`gap between deltas, ${beside}: p99.9`, ours)),
    }
  },
  storm: async ({ quick }) => {
    const clients = quick ? 100 : 1000
    const storms = await reconnectStorm({ clients, rounds: quick ? 1 : 3 })
    return {
      notes: storms.map(
        ({ server, share, twice, p50, all }) =>
          `${clients} clients drop at once, ${server.name}, ${server.store}: ${number(share * 100)} % of the deltas delivered, ${twice} twice; ` +
          `back after ${number(p50, 0)} ms (p50), all after ${number(all, 0)} ms`,
      ),
      targets: storms.flatMap(({ server, share }) =>
        server.name === 'uamp' ? [singleTarget('share delivered', share, `reconnect storm, ${server.store}: share delivered`)] : [],
      ),
    }
  },
  memory: async ({ quick }) => {
    const sessions = quick ? 500 : 5000
    const { socket, session, beyond } = await memory({ sessions })
    const note =
      `memory per idle connection at ${sessions}: bare socket ${kilobytes(socket.rss)} (heap ${kilobytes(socket.heap)}), ` +
      `session after a response ${kilobytes(session.rss)} (heap ${kilobytes(session.heap)})`
    return { notes: [note], targets: [singleTarget('idle session beyond its socket', beyond.rss / 1000)] }
  },
  'memory load': async ({ quick }) => {
    const measured = await underLoad({ part: quick ? 0.05 : 1 })
    const notes = measured.map(
      ({ name, server, usual, peak }) =>
        `resident under load, ${name}, ${server.name}, ${server.store}: ${megabytes(usual)} (median), at most ${megabytes(peak)}`,
    )
    return { notes, targets: [] }
  },
  'memory readers': async ({ quick, tell }) => {
    const sizes = quick ? { still: 20, reading: 2, seconds: 3 } : { still: 200, reading: 10, seconds: 20 }
    const held = await slowReaders({ ...sizes, tell })
    return {
      notes: held.map(({ kind, readers, peak }) => `${readers} answers of 16 MB, ${kind}: at most ${megabytes(peak)} resident`),
      targets: quick ? [] : held.map(({ kind, peak }) => singleTarget('large answers', peak / 1e6, `large answers, ${kind}: resident`)),
    }
  },
  'memory gateway': async ({ quick, tell }) => {
    const endured = await endurance({ responses: quick ? 1000 : 50_000, tell })
    return {
      notes: endured.map(({ kind, points, heap, rss }) => {
        const last = points.at(-1)
        return (
          `a gateway after ${thousands(last?.responses ?? NaN)} responses, ${kind}: heap ${kilobytes(last?.heap ?? NaN)}, ` +
          `resident ${kilobytes(last?.rss ?? NaN)}; more with each: heap ${number(heap, 0)} bytes, resident ${number(rss, 0)}`
        )
      }),
      // A process that has just started still grows.
      targets: quick
        ? []
        : endured.map(({ kind, heap }) => singleTarget('heap kept per response', heap, `gateway, ${kind}: heap kept per response`)),
    }
  },
  cancel: async ({ quick }) => {
    const { p50, p99 } = await cancel({ runs: quick ? 20 : 200 })
    const note = `cancel of an endless answer: p50 ${number(p50)} ms, p99 ${number(p99)} ms`
    return { notes: [note], targets: [singleTarget('cancel, p99', p99)] }
  },
  'file growth': async ({ quick }) => {
    const bytes = await fileGrowth({ responses: quick ? 500 : 5000 })
    const note = `1,000 stored responses of one word let the data folder grow by ${kilobytes(bytes)}`
    return { notes: [note], targets: [singleTarget('file growth per 1,000 small stored responses', bytes / 1e6)] }
  },
  start: async ({ quick }) => {
    const { ready, answer } = await startUp({ runs: quick ? 1 : 10 })
    const note = `start: ready after ${number(ready, 0)} ms, first answer after ${number(answer, 0)} ms`
    return { notes: [note], targets: [singleTarget('ready after process start', ready)] }
  },
}

/** @param {'memory' | 'sqlite'} store @param {Options} options @returns {Promise<Outcome>} */
async function list(store, { quick }) {
  const sizes = { few: 100, many: quick ? 1000 : 10_000 }
  const { few, many } = await taskList({ ...sizes, store })
  const note = `a page of tasks, ${store}: ${number(few)} ms among ${sizes.few}, ${number(many)} ms among ${thousands(sizes.many)}`
  return { notes: [note], targets: [singleTarget('a2a list', many / few, `a2a list, ${store}: a page among many to one among few`)] }
}
