/** Under npm and npx one Ctrl-C arrives twice: from the terminal, and passed on. */
const SAME_MS = 500

/** What tells a program to stop; the last one, that its terminal has gone. */
export const STOP: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Calls the listener for each signal, instead of ending the process. */
export function onSignal(signals: readonly NodeJS.Signals[], listener: () => void): void {
  let last = -Infinity
  const heard = (): void => {
    const now = performance.now()
    if (now - last < SAME_MS) return
    last = now
    listener()
  }
  for (const signal of signals) process.on(signal, heard)
}
