// @ts-check

/**
 * What is wrong with a version of Node, and what to do; undefined if it works. `src/cli/node-version.ts` says the same: this
 * package and the scripts of the repository run before it is built.
 * @param {string} version @param {string} engine what package.json says, such as `>=20.19`
 * @returns {string | undefined}
 */
export function nodeMistake(version, engine) {
  const needed = engine.replace(/^>=/, '')
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = needed.split('.').map(Number)
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return undefined
  return `uamp needs Node ${needed} or later, and this is ${version}: install a newer one from https://nodejs.org, or with \`nvm install ${leastMajor}\``
}
