// @ts-check
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { start } from '../lib/process.js'
import { sqlite } from '../servers/index.js'

const CLIENTS = 16
/** Characters of a task's answer. */
const ANSWER = 96 * 1024
/** How often the size of the folder is looked at. */
const STEP = 256

/**
 * Fills a data folder with tasks of A2A, as a server that is used for long has them, and gives a page of their list.
 *
 * @param {{ folder: string, bytes: number, tell: (text: string) => void }} options
 */
export async function fill({ folder, bytes, tell }) {
  const server = await start(sqlite.file, { args: [...sqlite.args, folder] })
  try {
    const url = `http://127.0.0.1:${server.ready.port}/a2a`
    let tasks = 0
    let size = 0
    while (size < bytes) {
      let left = STEP
      const worker = async () => {
        while (left-- > 0) await ask(url, 'SendMessage', { message: message(`/big ${ANSWER}`) })
      }
      await Promise.all(Array.from({ length: CLIENTS }, worker))
      tasks += STEP
      size = await sizeOf(folder)
      if ((tasks / STEP) % 8 === 0) tell(`  ${(size / 1e6).toFixed(0)} MB`)
    }
    return { tasks, bytes: size, page: await ask(url, 'ListTasks', { pageSize: 50 }) }
  } finally {
    await server.stop()
  }
}

/** Bytes of all files in a data folder. @param {string} folder @returns {Promise<number>} */
export async function sizeOf(folder) {
  const entries = await readdir(folder, { withFileTypes: true })
  const sizes = entries.map(async (entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? sizeOf(path) : (await stat(path)).size
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

let messages = 0
const message = (/** @type {string} */ text) => ({ messageId: `m-${++messages}`, role: 'ROLE_USER', parts: [{ text }] })

/** @param {string} url @param {string} method @param {object} params */
async function ask(url, method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', 'a2a-version': '1.0' }, body })
  const answer = await response.json()
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`)
  return answer
}
