// @ts-check
import { a2a } from './a2a.js'
import { acp } from './acp.js'
import { agUi } from './ag-ui.js'
import { get, entry } from './entry.js'
import { events } from './events.js'
import { oauth } from './oauth.js'
import { omnia } from './omnia.js'
import { openai } from './openai.js'
import { isOptional, payments } from './payments.js'
import { server } from './server.js'

/** @typedef {import('./entry.js').Entry} Entry */

/** Every transport, and valid requests and conversations of it. @type {Readonly<Record<string, readonly Entry[]>>} */
export const CORPUS = { events, openai, a2a, acp, 'ag-ui': agUi, omnia, oauth, payments, server }

/** What misbehaves on purpose: see processes/planted.js. @type {readonly Entry[]} */
export const PLANTED = [entry('GET /planted', get('/planted'), { form: 'uamp', isPublic: true })]

/** False for an entry whose routes not every server has, and this one does not. @param {Entry} entry @param {readonly string[]} routes */
export function isThere({ covers }, routes) {
  return covers.every((route) => !isOptional(route) || routes.some((line) => line === route || line.startsWith(`${route} (`)))
}

/** What the corpus lacks of the routes that a server has, and what it has too much. @param {readonly string[]} routes as the server lists them */
export function uncovered(routes) {
  const covered = new Set(Object.values(CORPUS).flatMap((entries) => entries.flatMap(({ covers }) => covers)))
  const served = new Set(routes.map((line) => line.replace(/ \(.*\)$/, '')))
  return {
    missing: [...served].filter((route) => !covered.has(route)),
    unknown: [...covered].filter((route) => !served.has(route) && !isOptional(route)),
  }
}
