/** Child processes that end with everything they started, and that inherit no variable that could hold a key. */

const HARMLESS = 'PATH HOME LANG LC_ALL TERM USER LOGNAME SHELL TMPDIR SYSTEMROOT APPDATA USERPROFILE PATHEXT'.split(' ')

const OWN_GROUP = process.platform !== 'win32'

export function childOptions(cwd: string, env: Readonly<Record<string, string>> = {}) {
  const kept = HARMLESS.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]])
  return { cwd, env: { ...(Object.fromEntries(kept) as Record<string, string>), ...env }, detached: OWN_GROUP }
}

export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(OWN_GROUP ? -pid : pid, signal)
  } catch {
    // It has ended already.
  }
}

/** Whether any process of the group is left. */
export function isGroup(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(OWN_GROUP ? -pid : pid, 0)
  } catch {
    return false
  }
}
