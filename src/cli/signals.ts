/** Under npm and npx one Ctrl-C arrives twice: from the terminal, and from npm. */
const SAME_MS = 500

/** Signals that stop a program. SIGHUP says that its terminal is gone. */
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

/** How often to check whether the parent is alive, because no event says so. */
const PARENT_MS = 250

/**
 * Calls the listener when the parent that npm started this process with is gone, so that no server is left behind with its port and its
 * data. npx passes a signal to its shell, which dies without passing it on; `npm start` dies of SIGHUP without passing it on.
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
