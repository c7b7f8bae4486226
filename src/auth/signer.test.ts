import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { memoryStore } from '../stores/memory.ts'
import { sqliteStore } from '../stores/sqlite.ts'
import { signerContract, type Reopened } from '../../test/contract/signer.ts'

signerContract('memory', async () => {
  const store = memoryStore()
  const reopened: Reopened = { store, again: async () => reopened }
  return reopened
})

signerContract('sqlite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-signer-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const open = (): Reopened => {
    const store = sqliteStore({ path: join(folder, 'uamp.db') })
    onTestFinished(() => store.close())
    return { store, again: async () => (await store.close(), open()) }
  }
  return open()
})
