/** The oldest Node that works, as `engines` in package.json says. */
const NEEDED = [20, 19] as const

/** What is wrong with a version of Node, and what to do; undefined if it works. */
export function nodeMistake(version: string): string | undefined {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return undefined
  const needed = NEEDED.join('.')
  return `uamp needs Node ${needed} or later, and this is ${version}: install a newer one from https://nodejs.org, or with \`nvm install ${NEEDED[0]}\``
}
