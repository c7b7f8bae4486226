// @ts-check
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { answer } from '../lib/process.js'
import { sleep } from '../lib/stats.js'

/** Portkey's gateway from npm, as it comes. Its CPU time is that of its own process. */
const port = await freePort()
const script = fileURLToPath(new URL('../peers/node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url))
const child = spawn(process.execPath, [script, `--port=${port}`, '--headless'], { stdio: 'ignore' })
const TICKS_PER_SECOND = 100

for (let tries = 0; tries < 100; tries++) {
  if (
    await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  )
    break
  await sleep(100)
}
answer(
  {
    cpu() {
      // After the name of the program, which may hold spaces: fields 14 and 15 are user and system time.
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1e6
    },
  },
  { ready: { port }, close: () => child.kill() },
)

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
      server.close(() => resolve(port))
    })
  })
}
