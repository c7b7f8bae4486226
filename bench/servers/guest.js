// @ts-check
import { demo } from 'uamp/agents/demo'
import { connectAgents } from 'uamp/server/node'
import { answer } from '../lib/process.js'
import { GUEST } from './secrets.js'

/** An agent without an address, which a host offers. */
const [, , url = ''] = process.argv
await connectAgents(url, demo(), { token: GUEST })

answer({})
