/** A server that calls webhooks on this machine, in a process of its own, so that it can be killed. Run by push-crash.test.ts. */
import { demo } from '../../src/agents/demo/index.ts'
import { serve } from '../../src/serve/index.ts'

const { url } = await serve(demo(), {
  port: 0,
  data: process.argv[2] ?? 'memory',
  outbound: { allow: ['127.0.0.1'] },
  a2a: { pushLimits: { firstPauseMs: 1, longestPauseMs: 5 } },
  log: () => undefined,
})
process.stdout.write(`${url}\n`)
