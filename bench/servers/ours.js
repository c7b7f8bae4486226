// @ts-check
import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'
import { answer } from '../lib/process.js'
import { dataOf } from './data.js'

const [, , store, folder] = process.argv
const { data, remove } = await dataOf(store, folder)
// Load clients ask faster than people may.
const omnia = { limits: { messagesPerSecond: 1e6, messageBurst: 1e6 } }
const server = await serve([demo()], { port: 0, host: '127.0.0.1', data, omnia })

answer(
  {},
  {
    ready: { port: server.port },
    async close() {
      // Only a database that somebody looks at afterwards is worth closing.
      if (folder !== undefined) await server.close({ graceMs: 0 })
      await remove()
    },
  },
)
