/** Where the package is to work, and the bindings of SQLite that it needs there. On Linux, npm cannot tell glibc and musl apart for these. */
export const PLATFORMS: readonly Platform[] = [
  { os: 'darwin', cpu: 'arm64', libsql: ['@libsql/darwin-arm64'] },
  { os: 'darwin', cpu: 'x64', libsql: ['@libsql/darwin-x64'] },
  { os: 'linux', cpu: 'arm64', libsql: ['@libsql/linux-arm64-gnu', '@libsql/linux-arm64-musl'] },
  { os: 'linux', cpu: 'x64', libsql: ['@libsql/linux-x64-gnu', '@libsql/linux-x64-musl'] },
  { os: 'win32', cpu: 'x64', libsql: ['@libsql/win32-x64-msvc'] },
  // There is none yet. Sessions are kept in memory there, or by Node for x64, which Windows emulates.
  { os: 'win32', cpu: 'arm64', libsql: [] },
]

export interface Platform {
  readonly os: string
  readonly cpu: string
  readonly libsql: readonly string[]
}

/** The packages that npm says, in a rehearsal, it would add. */
export function added(output: string): string[] {
  return [...output.matchAll(/^add (\S+) \S+$/gm)].map(([, name = '']) => name).toSorted()
}
