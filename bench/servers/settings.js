// @ts-check
import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'
import { answer } from '../lib/process.js'
import { dataOf } from './data.js'

/** Our server with options of `serve`, given as JSON. */
const [, , store, options = '{}'] = process.argv
const { data, remove } = await dataOf(store)
const server = await serve([demo()], { port: 0, host: '127.0.0.1', data, ...JSON.parse(options) })

answer({}, { ready: { port: server.port }, close: remove })
