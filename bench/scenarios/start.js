// @ts-check
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { median, sleep } from '../lib/stats.js'
import { WsClient } from '../lib/ws-client.js'

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/**
 * Milliseconds from the start of the process to `/health` answering, and to the first delta of the first answer.
 *
 * @param {{ runs: number }} options
 */
export async function startUp({ runs }) {
  const times = []
  for (let i = 0; i < runs; i++) times.push(await timed())
  return { ready: median(times.map(({ ready }) => ready)), answer: median(times.map(({ answer }) => answer)) }
}

async function timed() {
  const data = await mkdtemp(join(tmpdir(), 'uamp-start-'))
  const port = await freePort()
  const began = performance.now()
  const child = spawn(process.execPath, [CLI, 'serve', '--port', String(port), '--data', data], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  try {
    while (!(await healthy(port))) {
      if (child.exitCode !== null) throw new Error(`the CLI exited with ${child.exitCode}`)
      await sleep(3)
    }
    const ready = performance.now() - began
    const client = new WsClient({ port, buffer: Buffer.alloc(64 * 1024) })
    await client.open()
    await client.respond('hello')
    client.close()
    return { ready, answer: client.tally.firstAt - began }
  } finally {
    child.kill()
    await exited
    await rm(data, { recursive: true, force: true })
  }
}

/** @param {number} port @returns {Promise<boolean>} */
function healthy(port) {
  return new Promise((resolve) => {
    get({ port, host: '127.0.0.1', path: '/health', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    }).on('error', () => resolve(false))
  })
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}
