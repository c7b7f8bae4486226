import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Child, ROOT } from '../docs/child.ts'

const EXAMPLES = join(ROOT, 'examples')
const folders = readdirSync(EXAMPLES, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))

/** What needs packages of its own is tried where those are installed: test/interop. */
const complete = folders.filter((folder) => !existsSync(join(EXAMPLES, folder, 'package.json')))

test.for(complete)('%s: the client is content with the server', async (folder) => {
  const cwd = join(EXAMPLES, folder)
  const server = existsSync(join(cwd, 'server.ts'))
    ? Child.node('server.ts', { cwd, env: { PORT: '0' } })
    : Child.node(join(ROOT, 'dist/cli/main.js'), { cwd, args: ['serve', '--port', '0'] })
  onTestFinished(() => server.stop())
  const [, url = ''] = await server.printed(/ at (http:\S+)/)
  const client = Child.node('client.ts', { cwd, args: [url] })
  onTestFinished(() => client.stop())
  expect({ exit: await client.exit, printed: client.output }).toEqual({ exit: 0, printed: expect.not.stringContaining('Error') })
  expect(server.output).not.toContain('"level":50')
})

test('a protocol of your own takes under 30 lines, an agent ten', () => {
  const lines = (file: string) => readFileSync(join(EXAMPLES, file), 'utf8').trim().split('\n').length
  expect(lines('custom-transport/plain.ts')).toBeLessThan(30)
  expect(lines('hello/server.ts')).toBeLessThanOrEqual(10)
})

test('the list of examples is complete', () => {
  const list = readFileSync(join(EXAMPLES, 'README.md'), 'utf8')
  for (const folder of folders) expect(list).toContain(`[${folder}](${folder})`)
})
