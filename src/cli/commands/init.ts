import { writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { UampError } from '../../protocol/errors.ts'
import { findConfig } from '../../config/agents.ts'
import { AGENT_NAME } from '../../config/schema.ts'
import { PROVIDER_TYPES, PROVIDERS, type ProviderType } from '../../providers/by-name.ts'

export interface InitFlags {
  readonly provider?: string
  readonly model?: string
  readonly baseUrl?: string
  readonly name?: string
  readonly yes?: true
  readonly force?: true
}

const FILE = 'uamp.config.yaml'

interface Chosen {
  readonly type: ProviderType
  readonly model: string
  readonly baseUrl: string | undefined
  readonly name: string
  readonly instructions: string
}

/** Writes a config, and asks for what the flags leave out. */
export async function init(flags: InitFlags): Promise<number> {
  const there = findConfig('.')
  if (there !== undefined && !flags.force) {
    throw new UampError('conflict', `${there} exists already: change it, or overwrite it with --force`)
  }
  if (there !== undefined && there !== FILE) {
    throw new UampError('conflict', `${there} exists already, and \`uamp serve\` would read it instead of ${FILE}: remove it first`)
  }
  const { ask, close } = asker({ silent: flags.yes ?? false })
  try {
    const chosen = await choose(flags, ask)
    await writeFile(FILE, await configText(chosen))
    process.stdout.write(`Wrote ${FILE}: ${chosen.name} is ${chosen.model}, by ${chosen.type}.\n\nNext:\n${next(chosen)}  npx uamp serve\n`)
    return 0
  } finally {
    close()
  }
}

async function choose(flags: InitFlags, ask: Ask): Promise<Chosen> {
  const type = (await ask({
    text: `Provider (${PROVIDER_TYPES.join(', ')})`,
    flag: '--provider',
    given: flags.provider,
    usual: usualProvider(),
    check: (text) => (PROVIDER_TYPES.some((known) => known === text) ? undefined : `"${text}" is not one of ${PROVIDER_TYPES.join(', ')}`),
  })) as ProviderType
  const model = await ask({
    text: 'Model',
    flag: '--model',
    given: flags.model,
    usual: PROVIDERS[type].model,
    check: (text) => (/^\S+$/.test(text) ? undefined : 'The name of a model has no spaces'),
  })
  const baseUrl =
    type === 'openai-compatible' || flags.baseUrl !== undefined
      ? await ask({
          text: 'Address, such as http://localhost:8000/v1',
          flag: '--base-url',
          given: flags.baseUrl,
          usual: undefined,
          check: checkUrl,
        })
      : undefined
  const name = await ask({
    text: 'Name of the agent',
    flag: '--name',
    given: flags.name,
    usual: 'assistant',
    check: (text) => (AGENT_NAME.test(text) ? undefined : 'Use letters, digits, dots, dashes and underscores'),
  })
  const instructions = await ask({
    text: 'Instructions',
    flag: undefined,
    given: undefined,
    usual: 'You are a helpful assistant.',
    check: () => undefined,
  })
  return { type, model, baseUrl, name, instructions }
}

/** The first provider that has a key in the environment. */
function usualProvider(): ProviderType {
  return PROVIDER_TYPES.find((type) => PROVIDERS[type].keys.some((key) => (process.env[key] ?? '') !== '')) ?? 'openai'
}

function checkUrl(text: string): string | undefined {
  return /^https?:\/\/\S+$/.test(text) ? undefined : 'An address begins with http:// or https://'
}

function next({ type }: Chosen): string {
  const keys: readonly string[] = PROVIDERS[type].keys
  if (keys.length === 0 || keys.some((key) => (process.env[key] ?? '') !== '')) return ''
  return `  export ${keys[0]}=…\n`
}

/** A config that people can continue to edit. */
async function configText({ type, model, baseUrl, name, instructions }: Chosen): Promise<string> {
  const { stringify } = await import('yaml')
  const scalar = (text: string): string => stringify(text, { lineWidth: 0 }).trimEnd()
  const provider = type === 'openai-compatible' ? 'local' : type
  const keys: readonly string[] = PROVIDERS[type].keys
  return [
    '# `uamp serve` reads this file, and reads it again whenever it changes.',
    'agents:',
    `  - name: ${scalar(name)}`,
    '    # provider/model',
    `    model: ${scalar(`${provider}/${model}`)}`,
    `    instructions: ${scalar(instructions)}`,
    '    # tools: [./tools.ts]',
    '    # mcp: [{ command: npx, args: [-y, some-mcp-server] }]',
    '    # fallbacks: [provider/model]',
    ...(keys.length === 0 ? [] : ['', `# The key comes from ${keys[0]}. Another variable: providers.${provider}.apiKey: \${VARIABLE}`]),
    ...(baseUrl === undefined
      ? []
      : [
          'providers:',
          `  ${provider}:`,
          ...(provider === type ? [] : [`    type: ${type}`]),
          `    baseUrl: ${scalar(baseUrl)}`,
          ...(keys.length === 0 ? ['    # apiKey: ${VARIABLE}'] : []),
        ]),
    '',
  ].join('\n')
}

interface Asked {
  readonly text: string
  /** The flag that answers the question. */
  readonly flag: string | undefined
  /** The value of the flag. */
  readonly given: string | undefined
  readonly usual: string | undefined
  /** The problem with an answer, if there is one. */
  readonly check: (answer: string) => string | undefined
}

type Ask = (question: Asked) => Promise<string>

/** Asks on the terminal, or reads one answer a line from a pipe. `silent` takes the defaults. */
function asker({ silent }: { readonly silent: boolean }): { ask: Ask; close: () => void } {
  const { stdin, stdout } = process
  const lines = silent ? undefined : createInterface({ input: stdin })
  const answers = lines?.[Symbol.asyncIterator]()

  async function ask(question: Asked): Promise<string> {
    const { text, given, usual, check, flag } = question
    if (given !== undefined) return accepted(given, question)
    if (!answers) {
      if (usual !== undefined) return usual
      throw new UampError('invalid_request', `Add ${flag}: it has no default`)
    }
    for (;;) {
      stdout.write(`${text}${usual === undefined ? '' : ` [${usual}]`}: `)
      const { value, done } = await answers.next()
      if (done) throw new UampError('invalid_request', 'There was no answer: add --yes to take the defaults')
      const answer = value.trim() === '' ? usual : value.trim()
      const problem = answer === undefined ? 'There is no default here' : check(answer)
      if (answer !== undefined && problem === undefined) return answer
      stdout.write(`${problem}.\n`)
    }
  }
  return { ask, close: () => lines?.close() }
}

function accepted(given: string, { flag, check }: Asked): string {
  const problem = check(given)
  if (problem !== undefined) throw new UampError('invalid_request', `${flag}: ${problem}`)
  return given
}
