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

/** How often it is looked whether the parent is still there: nothing tells. */
const PARENT_MS = 250

/**
 * Calls the listener when the one has gone that npm started this process by, and a server would be left behind with its port and its
 * data. npx hands a signal on to its shell, which dies of it without a word to us; `npm start` dies of SIGHUP, which it does not hand on.
 */
export function onOrphaned(env: NodeJS.ProcessEnv, listener: () => void): void {
  if (env['npm_command'] !== 'exec' && env['npm_command'] !== 'start') return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    listener()
  }, PARENT_MS).unref()
}
