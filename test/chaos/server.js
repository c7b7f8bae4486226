// @ts-check
/** The server that is killed: a program of its own, on a real folder. Its one argument is JSON. */
import { chaosAgent } from './agent.js'
import { lay } from '../support/killed/fuse.js'

/** @type {{ port: number, data: string, fuse?: import('../support/killed/fuse.js').Fuse }} */
const { port, data, fuse } = JSON.parse(process.argv[2] ?? '{}')
// Whoever started it may be killed too.
process.stdin.on('end', () => process.exit()).resume()
const laid = fuse && lay(fuse)
// After the fuse: what the driver's prototype is when the store prepares its statements counts.
const { serve } = await import('../../dist/serve/index.js')

await serve([chaosAgent('chaos'), chaosAgent('kept')], {
  port,
  data,
  defaultAgent: 'chaos',
  log: (level, message, fields) => {
    const error = fields?.['error']
    if (level === 'error') process.stderr.write(`${message} ${error instanceof Error ? error.stack : JSON.stringify(fields)}\n`)
  },
})
laid?.ready()
process.stdout.write('ready\n')
