import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { transformSync } from '@swc/wasm-typescript'
import { Child, ROOT } from './child.ts'
import type { Snippet } from './snippets.ts'

/** What `npm start` serves. */
const DEMO = `import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'
await serve(demo(), { port: 8787 })`

const INTEROP = join(ROOT, 'test/interop')
/** What a guide may tell its reader to install besides. */
const CLIENTS = [
  '@ag-ui/client',
  '@copilotkit/runtime',
  'express',
  'fastify',
  'openai',
  'ai',
  'zod',
  '@ai-sdk/openai',
  '@ai-sdk/openai-compatible',
  '@mcpc-tech/acp-ai-provider',
  '@langchain/openai',
  '@openai/agents',
  '@openai/agents-realtime',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/sdk-trace-node',
]

/** A folder as a reader has it: this package installed, with what comes with it, and other clients. */
export class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), 'uamp-docs-'))
  #port = 0
  #server: Child | undefined

  constructor() {
    this.#install('uamp', ROOT)
    mkdirSync(join(this.folder, 'node_modules/.bin'))
    symlinkSync(join(ROOT, 'dist/cli/main.js'), join(this.folder, 'node_modules/.bin/uamp'))
    for (const name of ['ws', '@types/node', '@types/ws']) this.#install(name, join(ROOT, 'node_modules', name))
    for (const name of CLIENTS) this.#install(name, join(INTEROP, 'node_modules', name))
    for (const name of ['@hono/node-server', 'hono']) this.#install(name, join(ROOT, 'node_modules', name))
    // Installed under the name of its generation.
    this.#install('@a2a-js/sdk', join(INTEROP, 'node_modules/a2a1'))
    this.#install('@agentclientprotocol/sdk', join(INTEROP, 'node_modules/acp24'))
    writeFileSync(join(this.folder, 'package.json'), '{ "type": "module" }')
  }

  get url(): string {
    return `http://localhost:${this.#port}`
  }

  /** Starts a server in place of the one before, and waits until it answers. */
  async serve(text = DEMO, file = 'demo.ts', below = ''): Promise<void> {
    await this.#serve(() => Child.node(this.#program(text, file), { cwd: this.folder }), below)
  }

  /** The same with `npx uamp serve`. The command replaces the shell, and is not npx, which would outlive a kill of it. */
  async serveByShell(text: string): Promise<void> {
    await this.#serve(() => this.#shell(text.replace('npx uamp serve', () => `exec node_modules/.bin/uamp serve --port ${this.#port}`)))
  }

  async #serve(start: () => Child, below = ''): Promise<void> {
    await this.#server?.stop()
    this.#port = await freePort()
    const server = (this.#server = start())
    while (!(await isReady(`${this.url}${below}/ready`))) {
      if (server.over) throw new Error(server.output)
      await sleep(20)
    }
  }

  /** Runs a program to its end and gives what it printed. Throws when it fails. */
  async run({ text, file, language }: Snippet): Promise<string> {
    if (!this.#server) await this.serve()
    const child = language === 'sh' ? this.#shell(text) : Child.node(this.#program(text, file), { cwd: this.folder })
    const code = await child.exit
    if (code !== 0) throw new Error(`It ended with ${code}:\n${child.output}`)
    return child.output
  }

  write(text: string, file: string): string {
    writeFileSync(join(this.folder, file), text.replaceAll('8787', String(this.#port)))
    return file
  }

  async close(): Promise<void> {
    await this.#server?.stop()
    rmSync(this.folder, { recursive: true })
  }

  /**
   * The JavaScript of a program, made by what strips types for `uamp serve`. Here and not in the program's process, because eighty of
   * them would each load it first.
   */
  #program(text: string, file: string): string {
    const stripped = file.endsWith('.ts') ? transformSync(text, { mode: 'strip-only', module: true, filename: file }).code : text
    return this.write(stripped.replaceAll(/'(\.\/[\w.-]+)\.ts'/g, "'$1.js'"), file.replace(/\.ts$/, '.js'))
  }

  #install(name: string, from: string): void {
    const to = join(this.folder, 'node_modules', name)
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(from, to, 'junction')
  }

  /** What one block sets, the next ones know. */
  #shell(text: string): Child {
    const script = `set -euo pipefail -o allexport\nif [ -f .variables ]; then . ./.variables; fi\n${text}\nexport -p > .variables\n`
    return new Child('bash', ['-c', script.replaceAll('8787', String(this.#port))], { cwd: this.folder })
  }
}

/** A guide may give its server a certificate of an authority that nobody knows. */
async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    const options = { rejectUnauthorized: false, agent: false }
    return new Promise((resolve) =>
      get(url.replace('http:', 'https:'), options, (response) => resolve(response.resume().statusCode === 200)).once('error', () =>
        resolve(false),
      ),
    )
  }
}

/** Ports that a workspace of this process has, or had. */
const taken = new Set<number>()

/** Below the ports that the system gives to clients, so that none of them takes it before the server does. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (taken.has(port)) continue
    taken.add(port)
    const server = createServer()
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => server.close(resolve))
    if (free) return port
  }
}
