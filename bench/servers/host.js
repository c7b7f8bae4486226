// @ts-check
import { serve } from 'uamp/server/node'
import { answer, start } from '../lib/process.js'
import { dataOf } from './data.js'

/** Our server without an agent of its own: `guest.js`, a process beside it, connects the demo. Its CPU time is that of both. */
const [, , store, options = '{}'] = process.argv
const { data, remove } = await dataOf(store)
const server = await serve([], { port: 0, host: '127.0.0.1', data, ...JSON.parse(options) })
const guest = await start('servers/guest.js', { args: [server.url], execArgv: process.execArgv })

answer(
  {
    async cpu() {
      const { user, system } = process.cpuUsage()
      return user + system + (await guest.call('cpu'))
    },
  },
  {
    ready: { port: server.port },
    async close() {
      await guest.stop()
      await remove()
    },
  },
)
