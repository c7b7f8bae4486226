import { mkdir, writeFile } from 'node:fs/promises'
import { envelopeSchemas } from '../dist/envelope/schemas.js'
import { eventSchemas } from '../dist/protocol/schemas.js'

const folder = new URL('../dist/schemas/', import.meta.url)
await mkdir(folder, { recursive: true })
for (const [name, schemas] of Object.entries({ envelope: envelopeSchemas(), events: eventSchemas() })) {
  await writeFile(new URL(`${name}.json`, folder), `${JSON.stringify(schemas, null, 2)}\n`)
}
