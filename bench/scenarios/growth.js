// @ts-check
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { start } from '../lib/process.js'
import { sqlite } from '../servers/index.js'
import { sizeOf } from './fill.js'

const CLIENTS = 10

/**
 * Bytes by which 1,000 stored responses of one word let a data folder grow, each in a conversation of its own. Measured while no
 * server has it open, and not from the first ones, with which the file gets its first pages.
 *
 * @param {{ responses: number }} options
 */
export async function fileGrowth({ responses }) {
  const folder = await mkdtemp(join(tmpdir(), 'uamp-bench-'))
  try {
    await store(folder, 500)
    const before = await sizeOf(folder)
    await store(folder, responses)
    return ((await sizeOf(folder)) - before) / (responses / 1000)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** @param {string} folder @param {number} responses */
async function store(folder, responses) {
  const remote = await start(sqlite.file, { args: [...sqlite.args, folder] })
  const client = await start('load.js')
  try {
    await client.call('open', { port: remote.ready.port, transport: 'responses', count: CLIENTS })
    await client.call('check', { text: '/count 1', deltas: 1, words: 1 })
    await client.call('run', { text: '/count 1', deltas: 1, responses: responses / CLIENTS })
  } finally {
    await client.stop()
    await remote.stop()
  }
}
