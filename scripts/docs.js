// @ts-check
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './build.js'
import { writeSite } from './docs/site.js'

/** `npm run docs -- [--out folder]`: the guide as web pages that need no server and ask nobody for anything. */
const { values } = parseArgs({ options: { out: { type: 'string', default: join(root, 'site') } } })
const { pages, bytes } = await writeSite(root, values.out)
console.log(`${pages} pages, ${(bytes / 1e6).toFixed(1)} MB: open ${join(values.out, 'index.html')}`)
