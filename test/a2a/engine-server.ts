/** A server with the engine in a process of its own, so that it can be killed. Run by engine-crash.test.ts. */
import { demo } from '../../src/agents/demo/index.ts'
import { serve } from '../../src/serve/index.ts'
import { engineTransport } from './engine-transport.ts'

const { url } = await serve(demo(), { port: 0, data: process.argv[2] ?? 'memory', transports: [engineTransport()], log: () => undefined })
process.stdout.write(`${url}\n`)
