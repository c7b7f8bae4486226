import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildSync } from 'esbuild'
import { onTestFinished } from 'vitest'

/** Runs code that uses `sqliteStore` in a process of its own, after a shell command. It is killed at the end of the test. */
export function run(code: string, command?: string): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-process-'))
  const outfile = join(folder, 'child.mjs')
  const contents = `import { sqliteStore } from './sqlite.ts'\n${code}`
  buildSync({
    stdin: { contents, resolveDir: resolve('src/stores') },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'), 'junction')
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const
  const child = command
    ? spawn('sh', ['-c', `${command}; exec "$0" "$1"`, process.execPath, outfile], { stdio: [...stdio] })
    : spawn(process.execPath, [outfile], { stdio: [...stdio] })
  onTestFinished(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  return child
}
