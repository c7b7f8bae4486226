#!/usr/bin/env node
// @ts-check
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { choose, HELP, Refusal } from './choices.js'
import { nodeMistake } from './node-version.js'
import { filesOf } from './project.js'

/** @param {string} folder */
async function assertEmpty(folder) {
  /** @type {string[]} */
  let names
  try {
    names = await readdir(folder)
  } catch (thrown) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (thrown)
    if (code === 'ENOENT') return
    throw new Refusal(code === 'ENOTDIR' ? `${folder} is a file: name another folder.` : `${folder} cannot be read (${code}).`)
  }
  const there = names.filter((name) => name !== '.git')
  if (there.length > 0) throw new Refusal(`${folder} is not empty, it has ${there[0]}: name another folder, or empty this one.`)
}

/** @param {string} folder @returns {string} a name that npm takes */
function packageName(folder) {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  return name || 'my-agent'
}

/** @returns {Promise<{ version: string, engines: { node: string } }>} */
async function ownManifest() {
  return JSON.parse(await readFile(new URL('package.json', import.meta.url), 'utf8'))
}

/** @returns {string} the package manager that started this */
function manager() {
  const name = /^(npm|pnpm|yarn|bun)\//.exec(process.env['npm_config_user_agent'] ?? '')?.[1]
  return name ?? 'npm'
}

async function main() {
  const { version, engines } = await ownManifest()
  const mistake = nodeMistake(process.version, engines.node)
  if (mistake !== undefined) throw new Refusal(mistake)
  const chosen = await choose(process.argv.slice(2), { input: process.stdin, output: process.stdout })
  if (!chosen) {
    process.stdout.write(HELP)
    return
  }
  const { folder: given, language, model } = chosen
  const folder = resolve(given)
  await assertEmpty(folder)
  const asked = chosen.uamp ?? (process.env['UAMP_VERSION'] || `^${version}`)
  // A path is meant from here, and package.json would read it from the new folder.
  const uamp = /^\.{0,2}\//.test(asked) ? `file:${resolve(asked)}` : asked
  await mkdir(folder, { recursive: true })
  for (const [name, text] of Object.entries(filesOf({ name: packageName(folder), language, model, uamp }))) {
    // Never over a file that came meanwhile.
    await writeFile(join(folder, name), text, { flag: 'wx' })
  }
  const where = relative('', folder)
  const run = manager()
  const steps = [
    ...(where === '' ? [] : [`cd ${/\s/.test(where) ? `"${where}"` : where}`]),
    `${run} install`,
    ...(model === 'none' || model === 'ollama' ? [] : ['cp .env.example .env     # and write your key into it']),
    `${run} test`,
    `${run} start`,
    `${run} run chat             # in another terminal`,
  ]
  process.stdout.write(`Made ${where || 'a project here'}. Next:\n\n${steps.map((step) => `  ${step}\n`).join('')}`)
}

main().catch((thrown) => {
  const { message, code } = /** @type {NodeJS.ErrnoException} */ (thrown)
  process.stderr.write(
    thrown instanceof Refusal ? `${message}\n` : `The project could not be made: ${message}${code ? ` (${code})` : ''}\n`,
  )
  process.exitCode = 1
})
