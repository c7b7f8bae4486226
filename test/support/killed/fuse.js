// @ts-check
import { Socket } from 'node:net'
import Database from 'libsql'

/**
 * Where a process ends itself, as `kill -9` from outside would, which cannot be so exact:
 *
 * - `commit`: a transaction is about to be committed
 * - `committed`: it is, and nobody knows
 * - `write`: something is about to be written to a client
 *
 * @typedef {{ readonly at: 'commit' | 'committed' | 'write', readonly count: number, readonly from: 'start' | 'ready' }} Fuse
 */

/** The `count`-th time that it gets there, from its start or from when it was ready. @param {Fuse} fuse @returns {{ ready(): void }} */
export function lay({ at, count, from }) {
  let lit = from === 'start'
  let left = count
  const burn = () => {
    if (lit && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
  if (at === 'write') burnAtWrites(burn)
  else burnAtCommits(burn, at === 'commit')
  return {
    ready: () => {
      lit = true
    },
  }
}

/** @param {() => void} burn */
function burnAtWrites(burn) {
  const socket = /** @type {any} */ (Socket.prototype)
  for (const method of ['_write', '_writev']) {
    const original = socket[method]
    socket[method] = function (/** @type {unknown[]} */ ...args) {
      burn()
      return original.apply(this, args)
    }
  }
}

/** The driver is wrapped, not the store. @param {() => void} burn @param {boolean} before */
function burnAtCommits(burn, before) {
  const database = /** @type {any} */ (Database).prototype
  const { prepare } = database
  database.prepare = function (/** @type {string} */ sql) {
    const statement = prepare.call(this, sql)
    if (sql !== 'COMMIT') return statement
    const { run } = statement
    statement.run = (/** @type {unknown[]} */ ...args) => {
      if (before) burn()
      const result = run.apply(statement, args)
      if (!before) burn()
      return result
    }
    return statement
  }
}
