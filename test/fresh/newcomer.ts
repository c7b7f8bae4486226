import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { Cli } from '../cli/run.ts'
import { Terminal } from '../cli/terminal.ts'
import { isLong } from '../support/trials.ts'
import { run, type Fresh, type RunOptions } from './project.ts'

export interface Newcomer {
  /** The Node that everything runs on. */
  readonly node: string
  readonly language: 'ts' | 'js'
}

export interface Minutes {
  /** From `npm create uamp` to the first answer. */
  readonly seconds: number
  readonly asked: string
  readonly chatted: boolean
  readonly tested: boolean
}

/** What somebody types who has never used the package: make a project, change it, run it, ask it, chat with it, test it. */
export async function firstMinutes(fresh: Fresh, { node, language }: Newcomer): Promise<Minutes> {
  const begun = performance.now()
  const name = `newcomer-${language}-${(await versionOf(node)).replace(/\..*/, '')}`
  const home = join(fresh.folder, `${name}-home`)
  mkdirSync(home)
  const env = { PATH: [dirname(node), process.env['PATH']].join(delimiter), XDG_STATE_HOME: home, UAMP_VERSION: fresh.uamp }
  // As `npm create uamp` does, which takes only what is in a registry.
  await succeed(['npm', 'exec', '--yes', `--package=${fresh.creator}`, '--', 'create-uamp', name, '--language', language], {
    cwd: fresh.folder,
    env,
  })
  const cwd = join(fresh.folder, name)
  // Where what a project asks for beside ours is found in the folder above, it is not fetched again.
  const dev = isLong ? [] : ['--omit=dev']
  await succeed(['npm', 'install', '--prefix', cwd, '--prefer-offline', '--no-audit', '--no-fund', ...dev], { cwd, env })
  change(cwd, language)
  const server = new Cli(['start', '--', '--port', '0'], { cwd, env: { ...env, UAMP_DATA: 'memory' }, program: ['npm'] })
  const [, url = ''] = await server.prints(/ at (http:\/\/\S+)/)
  const body = '{"model":"parrot","messages":[{"role":"user","content":"hello there"}]}'
  const { output } = await succeed(['curl', '-s', `${url}/v1/chat/completions`, '-d', body], { cwd, env })
  const seconds = (performance.now() - begun) / 1000
  const { choices } = JSON.parse(output) as { choices: readonly { message: { content: string } }[] }

  const terminal = new Terminal(['run', '--silent', 'chat', '--', url], { cwd, env, program: ['npm'] })
  await terminal.answers(/parrot listens\./)
  await terminal.says('in the terminal', /You said in the terminal/)
  terminal.write('/quit\r')
  const chatted = (await terminal.exit()) === 0
  const { code, output: tested } = await run(['npm', 'test'], { cwd, env })
  return { seconds, asked: choices[0]?.message.content.trim() ?? '', chatted, tested: code === 0 && /pass 1\b/.test(tested) }
}

/** Gives the agent other words, its test too, and lets TypeScript compile JavaScript as well. */
function change(cwd: string, language: 'ts' | 'js'): void {
  replace(
    join(cwd, `agent.${language}`),
    "const heard = turn.messages.at(-1)?.content ?? ''",
    "const heard = `You said ${turn.messages.at(-1)?.content ?? ''}`",
  )
  replace(join(cwd, `agent.test.${language}`), "'hello there ')", "'You said hello there ')")
  if (language === 'ts') replace(join(cwd, 'tsconfig.json'), '"strict": true', '"allowJs": true,\n    "strict": true')
}

function replace(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'utf8')
  if (!text.includes(from)) throw new Error(`${file} does not say ${from}`)
  writeFileSync(file, text.replace(from, to))
}

export async function versionOf(node: string): Promise<string> {
  return (await succeed([node, '--version'], { cwd: dirname(node) })).output.trim().replace(/^v/, '')
}

async function succeed(command: readonly string[], options: RunOptions): Promise<{ readonly output: string }> {
  const { code, output } = await run(command, options)
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${output}`)
  return { output }
}
