import { once } from 'node:events'
import type { Output } from '../compose/acp-stdio.ts'

/** Takes standard output for one writer alone: what anybody else prints there goes to standard error, as it would break the protocol. */
export function takeStdout(): Output {
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr)
  // Nobody reads any more; the end of the input comes with it.
  stdout.on('error', () => undefined)
  return {
    write: (text) => !stdout.writable || write(text),
    drained: async () => void (await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]).catch(() => undefined)),
  }
}
