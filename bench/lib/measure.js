// @ts-check
import { start } from './process.js'
import { median, percentile, sleep } from './stats.js'
import { naive } from '../servers/index.js'

/** @typedef {import('../servers/index.js').Server} Server */
/** @typedef {'ws' | 'sse' | 'completions' | 'completions-once' | 'completions-16k' | 'completions-100k-tokens' | 'responses' | 'responses-unstored' | 'a2a' | 'a2a-once' | 'ag-ui' | 'acp' | 'omnia'} Transport */
/** @typedef {{ transport: Transport, clients: number, responses: number, ms: number, rounds: number, naiveRounds?: number, warm: number, deltas?: number, words?: number, fresh?: boolean }} Load `words`: as many are in the answer, where that is not one a delta; `fresh`: with new sockets and sessions in each round */
/** @typedef {{ rate: number, cpu: number, loop: number, clientCpu: number, firsts: number[] }} Sample */
/**
 * `cpuBeyond`: µs of CPU time that an event takes beyond what it takes the control. `loopBeyond`, `loopRatio`: of the thread
 * with the event loop alone.
 *
 * @typedef {{ server: Server, rate: number, cpu: number, clientCpu: number, p50: number, p99: number, rateRatio: number, cpuRatio: number, cpuBeyond: number, loopBeyond: number, loopRatio: number }} Row
 */

export const DELTAS = 500

/**
 * Puts the same load on each server in turn, round after round, so that a noisy minute hits all of them. Ratios are taken within a
 * round and their median reported.
 *
 * @param {readonly Server[]} servers the control among them, which the others are held against
 * @param {Load} load
 * @param {{ control: Server, execArgv?: readonly string[] }} options
 * @returns {Promise<Row[]>}
 */
export async function measure(servers, load, { control, execArgv = [] }) {
  const pairs = []
  try {
    for (const server of servers) pairs.push(await pair(server, load, execArgv))
    /** @type {Map<Server, Sample[]>} */
    const samples = new Map(servers.map((server) => [server, []]))
    for (let round = 0; round < load.rounds; round++) {
      for (const { server, sample } of pairs) {
        if (server === naive && round >= (load.naiveRounds ?? load.rounds)) continue
        samples.get(server)?.push(await sample())
      }
    }
    return servers.map((server) => row(server, samples.get(server) ?? [], samples.get(control) ?? []))
  } finally {
    await Promise.all(pairs.map(({ stop }) => stop()))
  }
}

/**
 * A server and its clients, connected, checked and warm.
 *
 * @param {Server} server
 * @param {Load} load
 * @param {readonly string[]} execArgv
 */
async function pair(server, load, execArgv) {
  const remote = await start(server.file, { args: server.args, execArgv: [...execArgv] })
  const client = await start('load.js')
  const deltas = load.deltas ?? DELTAS
  const words = load.words ?? deltas
  const text = load.ms ? `/count ${words} ${load.ms}` : `/count ${words}`
  const { transport = load.transport, tokens, signed, version } = server
  const headers = { ...server.headers, ...remote.ready.headers }
  const open = () => client.call('open', { port: remote.ready.port, transport, count: load.clients, headers, tokens, version })
  const sample = async (responses = load.responses) => {
    if (load.fresh) {
      await client.call('close')
      await open()
    }
    const before = await remote.call('cpu')
    const loopBefore = await remote.call('loop')
    const { ms, cpu, events, firsts } = await client.call('run', { text, deltas, responses })
    // What a server does after its last event (a commit) belongs to the events before.
    await sleep(50)
    const loop = (await remote.call('loop')) - loopBefore
    const used = (await remote.call('cpu')) - before
    return { rate: (events / ms) * 1000, cpu: used / events, loop: loop / events, clientCpu: cpu / events, firsts }
  }
  const stop = async () => {
    await client.stop()
    await remote.stop()
  }
  try {
    await open()
    await client.call('check', { text, deltas, words, signed })
    await sample(load.warm)
    return { server, sample, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** @param {Server} server @param {readonly Sample[]} samples @param {readonly Sample[]} control @returns {Row} */
function row(server, samples, control) {
  const firsts = samples.flatMap((sample) => sample.firsts)
  return {
    server,
    rate: median(samples.map((sample) => sample.rate)),
    cpu: median(samples.map((sample) => sample.cpu)),
    clientCpu: median(samples.map((sample) => sample.clientCpu)),
    p50: percentile(firsts, 0.5),
    p99: percentile(firsts, 0.99),
    rateRatio: median(samples.map((sample, round) => sample.rate / (control[round]?.rate ?? NaN))),
    cpuRatio: median(samples.map((sample, round) => (control[round]?.cpu ?? NaN) / sample.cpu)),
    cpuBeyond: median(samples.map((sample, round) => sample.cpu - (control[round]?.cpu ?? NaN))),
    loopBeyond: median(samples.map((sample, round) => sample.loop - (control[round]?.loop ?? NaN))),
    loopRatio: median(samples.map((sample, round) => (control[round]?.loop ?? NaN) / sample.loop)),
  }
}
