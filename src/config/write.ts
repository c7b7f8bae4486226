import { PROVIDERS } from './providers.ts'
import type { ProviderType } from './schema.ts'

/** What a new config is made of. */
export interface Chosen {
  readonly type: ProviderType
  readonly model: string
  readonly baseUrl: string | undefined
  readonly name: string
  readonly instructions: string
}

/** A config for people to go on from. */
export async function configText({ type, model, baseUrl, name, instructions }: Chosen): Promise<string> {
  const { stringify } = await import('yaml')
  const scalar = (text: string): string => stringify(text, { lineWidth: 0 }).trimEnd()
  const provider = type === 'openai-compatible' ? 'local' : type
  const keys: readonly string[] = PROVIDERS[type].keys
  return [
    '# `uamp serve` reads this, and reads it again when it changes.',
    'agents:',
    `  - name: ${scalar(name)}`,
    '    # provider/model. Another word before the slash is another provider.',
    `    model: ${scalar(`${provider}/${model}`)}`,
    `    instructions: ${scalar(instructions)}`,
    '    # tools: [./tools.ts]',
    '    # mcp: [{ command: npx, args: [-y, some-mcp-server] }]',
    '    # fallbacks: [provider/model]',
    ...(keys.length === 0 ? [] : ['', `# The key is taken from ${keys[0]}. Other places for it: apiKey: \${VARIABLE}`]),
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
