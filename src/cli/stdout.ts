import type { Output } from '../serve/acp-stdio.ts'

/**
 * Takes standard output for one writer alone: what anybody else prints there goes to standard error, as it would break the protocol.
 * What goes around `process.stdout`, by the file descriptor itself, is beyond our reach.
 */
export function takeStdout(): Output {
  const { stdout, stderr } = process
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr)
  const waiting: (() => void)[] = []
  const release = (): void => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  // An error: nobody reads any more, and the end of the input comes with it.
  for (const event of ['drain', 'close', 'error']) stdout.on(event, release)
  return {
    write: (text) => !stdout.writable || write(text),
    drained: () => new Promise((resolve) => (stdout.writableNeedDrain ? waiting.push(resolve) : resolve())),
  }
}
