/** Ends the process. Not by `process.exitCode`: timers of an agent, or a peer that does not answer a close, would keep the process alive. */
export async function leave(code: number): Promise<never> {
  await flushed()
  process.exit(code)
}

/** Resolves when everything that was printed has left the process. */
export async function flushed(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.writable) await new Promise<void>((resolve) => stream.write('', () => resolve()))
  }
}
