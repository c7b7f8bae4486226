// @ts-check

/**
 * `tokens`: what its clients show over HTTP, one after the other. `signed`: whether its answers have signatures, which is checked.
 * `version`: of HTTP, which its clients speak.
 *
 * @typedef {{ name: string, store: string, file: string, args: string[], transport?: import('../lib/measure.js').Transport, headers?: Record<string, string>, tokens?: readonly string[], signed?: boolean, version?: import('../lib/version-client.js').Version }} Server
 */

/** @type {Server} */
export const naive = { name: 'bare, naive', store: '–', file: 'servers/bare.js', args: ['naive'] }
/** @type {Server} */
export const best = { name: 'bare, best', store: '–', file: 'servers/bare.js', args: ['best'] }
/** @type {Server} */
export const template = { name: 'bare, template', store: '–', file: 'servers/bare.js', args: ['template'] }
/** With sessions that a client can come back to. @type {Server} */
export const resumable = { ...best, args: ['best', 'resumable'] }
/** @type {Server} */
export const sqlite = { name: 'uamp', store: 'sqlite', file: 'servers/ours.js', args: ['sqlite'] }
/** @type {Server} */
export const inMemory = { name: 'uamp', store: 'memory', file: 'servers/ours.js', args: ['memory'] }

/** @type {Server} */
export const a2aSdk = { name: '@a2a-js/sdk', store: 'memory', file: 'servers/a2a-sdk.js', args: [] }

/**
 * Our own completions, which keep nothing, as the control of Responses, which keep everything unless told otherwise.
 *
 * @type {{ control: Server, held: Server[] }}
 */
export const responses = {
  control: { ...inMemory, name: 'uamp, completions', store: '–', transport: 'completions' },
  held: [
    { ...inMemory, name: 'uamp', store: 'none', transport: 'responses-unstored' },
    { ...inMemory, transport: 'responses' },
    { ...sqlite, transport: 'responses' },
  ],
}
