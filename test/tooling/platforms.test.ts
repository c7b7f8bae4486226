import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT, run } from '../fresh/project.ts'
import { added, PLATFORMS } from '../support/platforms.ts'

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
const locked = Object.entries(packages).map(([path, entry]) => ({ ...entry, path, name: path.replace(/^.*node_modules\//, '') }))

/** Where npm finds a dependency of a package: beside it, or in a folder above. */
function found(name: string, from: string): boolean {
  if (Object.hasOwn(packages, `${from === '' ? '' : `${from}/`}node_modules/${name}`)) return true
  const above = from.lastIndexOf('node_modules/')
  return above >= 0 && found(name, from.slice(0, above).replace(/\/$/, ''))
}

test('the lock file lacked bindings of other platforms, so that `npm ci` refused it', () => {
  const missing = locked.flatMap(({ path, optionalDependencies = {} }) =>
    Object.keys(optionalDependencies).flatMap((name) => (found(name, path) ? [] : [`${path}: ${name}`])),
  )
  expect(missing).toEqual([])
})

test('every package has its checksum, and none names a registry', () => {
  expect(locked.filter(({ path, integrity }) => path !== '' && !integrity?.startsWith('sha512-')).map(({ path }) => path)).toEqual([])
  expect(locked.filter((entry) => 'resolved' in entry).map(({ path }) => path)).toEqual([])
})

test.concurrent.for(PLATFORMS)(
  '`npm ci` installs what $os on $cpu needs, and nothing of others',
  async ({ os, cpu, libsql }, { expect, onTestFinished }) => {
    const cwd = mkdtempSync(join(tmpdir(), 'uamp-lock-'))
    onTestFinished(() => rmSync(cwd, { recursive: true, force: true, maxRetries: 5 }))
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(ROOT, file), join(cwd, file))
    // With the folder by name: npm, where it runs the tests, names ours.
    const flags = ['--prefix', cwd, '--offline', '--ignore-scripts', '--no-audit', '--no-fund', `--cache=${join(cwd, 'cache')}`]
    const { code, output } = await run(['npm', 'ci', '--dry-run', `--os=${os}`, `--cpu=${cpu}`, ...flags], { cwd })
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('add zod ') })
    const names = added(output)
    const bound = locked.filter((entry) => entry.os && entry.cpu && names.includes(entry.name))
    const others = bound.filter((entry) => !entry.os?.includes(os) || !entry.cpu?.includes(cpu))
    expect(others.map(({ name }) => name)).toEqual([])
    expect(names.filter((name) => name.startsWith('@libsql/'))).toEqual(libsql)
    // What the build and the checks need.
    for (const tool of [
      '@esbuild/',
      '@rolldown/binding-',
      '@oxlint/binding-',
      '@oxc-parser/binding-',
      '@oxlint-tsgolint/',
      'lightningcss-',
    ])
      expect(names, tool).toContainEqual(expect.stringContaining(tool))
  },
)
