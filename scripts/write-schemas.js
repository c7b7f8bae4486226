import { mkdir, writeFile } from 'node:fs/promises'
import { eventSchemas } from '../dist/protocol/schemas.js'

const folder = new URL('../dist/schemas/', import.meta.url)
await mkdir(folder, { recursive: true })
await writeFile(new URL('events.json', folder), `${JSON.stringify(eventSchemas(), null, 2)}\n`)
