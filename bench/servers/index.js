// @ts-check

/** @typedef {{ name: string, store: string, file: string, args: string[] }} Server */

/** @type {Server} */
export const naive = { name: 'bare, naive', store: '–', file: 'servers/bare.js', args: ['naive'] }
/** @type {Server} */
export const best = { name: 'bare, best', store: '–', file: 'servers/bare.js', args: ['best'] }
/** @type {Server} */
export const sqlite = { name: 'uamp', store: 'sqlite', file: 'servers/ours.js', args: ['sqlite'] }
/** @type {Server} */
export const inMemory = { name: 'uamp', store: 'memory', file: 'servers/ours.js', args: ['memory'] }
