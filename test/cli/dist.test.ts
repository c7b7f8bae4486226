import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DIST = join(ROOT, 'dist')

async function filesOf(folder: string, ending: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true })
  return entries.filter((name) => name.endsWith(ending)).map((name) => join(folder, name))
}

/** Every name by which users import a part of the package: those with `*`, for each file that is there. */
async function names(): Promise<readonly string[]> {
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { exports: Record<string, unknown> }
  const files = (await filesOf(DIST, '.js')).map((file) => `./${relative(ROOT, file).replaceAll('\\', '/')}`)
  return Object.entries(exports).flatMap(([name, target]) => {
    const file = (target as { default?: unknown } | null)?.default
    if (typeof file !== 'string') return target === null || typeof target === 'string' ? [] : [name.replace('.', 'uamp')]
    const pattern = new RegExp(`^${file.replace('*', '([^/]+)')}$`)
    return files.flatMap((each) => {
      const found = pattern.exec(each)
      return found ? [name.replace('.', 'uamp').replace('*', found[1] ?? '')] : []
    })
  })
}

/** Imports every name, as a user does, and prints the classes of which there are two; then an error of a server. */
const COMPARE = `
const found = {}
for (const name of process.argv.slice(1)) {
  for (const [key, value] of Object.entries(await import(name))) {
    if (typeof value === 'function' && /^class\\b/.test(Function.prototype.toString.call(value))) (found[key] ??= new Set()).add(value)
  }
}
const { UampError } = await import('uamp')
const { serve } = await import('uamp/server/node')
const thrown = await serve([], { data: 'memory', host: '0.0.0.0', port: 0 }).catch((error) => error)
const several = Object.keys(found).filter((key) => found[key].size > 1)
console.log(JSON.stringify({ several, classes: Object.keys(found), isOurs: thrown instanceof UampError }))
`

test('a class is the same one under every name that the package exports it by', async () => {
  const all = await names()
  expect(all.length).toBeGreaterThan(25)
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', COMPARE, ...all], { cwd: ROOT })
  const { several, classes, isOurs } = JSON.parse(stdout) as { several: unknown; classes: unknown; isOurs: unknown }
  expect(classes).toEqual(expect.arrayContaining(['UampError', 'UampClientError']))
  expect({ several, isOurs }).toEqual({ several: [], isOurs: true })
})

test('no source is published twice', async () => {
  const parts = new Map<string, string[]>()
  for (const file of await filesOf(DIST, '.js')) {
    for (const [, source = ''] of (await readFile(file, 'utf8')).matchAll(/^\/\/ (src\/\S+|node_modules\/\S+)$/gm)) {
      parts.set(source, [...(parts.get(source) ?? []), relative(DIST, file)])
    }
  }
  expect(parts.size).toBeGreaterThan(300)
  expect([...parts].filter(([, files]) => files.length > 1)).toEqual([])
})

test('what the package needs at run time is installed with it', async () => {
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Record<string, Record<string, string>>
  const installed = { ...manifest['dependencies'], ...manifest['peerDependencies'] }
  const imported = new Set<string>()
  for (const file of await filesOf(DIST, '.js')) {
    for (const [, name = ''] of (await readFile(file, 'utf8')).matchAll(
      /(?:\bfrom ?|\bimport ?\(?|\bcreateRequire\(import\.meta\.url\)\()"((?:@[^/"]+\/)?[a-z][\w.-]*)(?:\/[^"\s]*)?"/g,
    )) {
      imported.add(name)
    }
  }
  expect(imported).toContain('libsql')
  expect([...imported].filter((name) => !(name in installed))).toEqual([])
})

test('types name no package that is not installed with this one', async () => {
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Record<string, Record<string, unknown>>
  const installed = { ...manifest['dependencies'], ...manifest['peerDependencies'] }
  const targets = JSON.stringify(manifest['exports']).matchAll(/"types":"\.\/([^"]+)"/g)
  const entries = [...targets].map(([, file = '']) => new RegExp(`^${file.replaceAll('*', '[^/]+')}$`))
  const all = await filesOf(DIST, '.d.ts')
  const open = all.filter((file) => entries.some((entry) => entry.test(relative(ROOT, file).replaceAll('\\', '/'))))
  expect(open.length).toBeGreaterThan(25)
  const seen = new Set<string>()
  const missing: string[] = []
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    for (const [, from = ''] of (await readFile(file, 'utf8')).matchAll(/(?:\bfrom |\bimport\(|^import )['"]([^'"\s]+)['"]/gm)) {
      const name = /^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0] ?? from
      if (from.startsWith('.')) open.push(join(dirname(file), from.replace(/\.[jt]s$/, '.d.ts')))
      else if (!from.startsWith('node:') && !(name in installed)) missing.push(`${relative(DIST, file)}: ${from}`)
    }
  }
  expect(missing).toEqual([])
})

/** The files that an import of this one loads, and what they import that is no file of the package. */
async function loadedBy(
  name: string,
): Promise<{ readonly files: ReadonlySet<string>; readonly others: readonly string[]; readonly bytes: number }> {
  const files = new Set<string>()
  const others: string[] = []
  const open = [join(DIST, name)]
  let bytes = 0
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file)) continue
    files.add(file)
    const text = await readFile(file, 'utf8')
    bytes += text.length
    for (const [, from = ''] of text.matchAll(/(?:\bfrom|\bimport) ?"([^"\s]+)"/g)) {
      if (from.startsWith('.')) open.push(join(dirname(file), from))
      else others.push(from)
    }
  }
  return { files, others, bytes }
}

test('a server loads few files', async () => {
  expect((await loadedBy('serve/index.js')).files.size).toBeLessThan(15)
})

test('a browser that loads the client loads nothing of Node, and not the server', async () => {
  const { others, bytes } = await loadedBy('client/index.js')
  expect(others).toEqual([])
  expect(bytes).toBeLessThan(100_000)
})
