import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { demo } from '../../dist/agents/demo/index.js'
import { serve } from '../../dist/compose/index.js'
import { answer } from '../lib/process.js'

const folder = process.argv[2] === 'memory' ? undefined : await mkdtemp(join(tmpdir(), 'uamp-bench-'))
// Load clients ask faster than people may.
const omnia = { limits: { messagesPerSecond: 1e6, messageBurst: 1e6 } }
const server = await serve([demo()], { port: 0, host: '127.0.0.1', data: folder ?? 'memory', omnia })

answer(
  {},
  {
    ready: { port: server.port },
    async close() {
      if (folder) await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  },
)
