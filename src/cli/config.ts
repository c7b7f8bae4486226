import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod/mini'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { explain } from '../protocol/explain.ts'
import { isAgent } from './agents.ts'

const CONFIG_FILES = ['ts', 'mts', 'js', 'mjs', 'json'].map((ending) => `uamp.config.${ending}`)

const AgentEntry = z.union(
  [z.string(), z.custom<AgentPort>(isAgent)],
  'must be the path of an agent module, such as "./agent.ts", or an agent made by defineAgent',
)

/** What a config file may say. Paths are relative to it. */
export const Config = z.strictObject({
  agents: z.array(AgentEntry).check(z.minLength(1, 'must name an agent, such as ["./agent.ts"]')),
  port: z.optional(z.int('must be a number from 0 to 65535').check(z.minimum(0), z.maximum(65_535))),
  host: z.optional(z.string()),
  data: z.optional(z.string()),
  tokens: z.optional(z.record(z.string(), z.string('must be the secret, or "$NAME" for what the environment has under NAME'))),
  origins: z.optional(z.array(z.string())),
  defaultAgent: z.optional(z.string()),
})
export type Config = z.infer<typeof Config>

export function findConfig(folder: string): string | undefined {
  return CONFIG_FILES.map((name) => join(folder, name)).find((file) => existsSync(file))
}

/** Throws with every field that is wrong, and what it should be. */
export function parseConfig(value: unknown, file: string): Config {
  const result = z.safeParse(Config, value, { error: (issue) => explainKeys(issue) ?? explain(issue) })
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => `\n  ${path.length === 0 ? '' : `${path.join('.')} `}${message}`)
  throw new UampError('invalid_request', `${file} is not a config:${problems.join('')}`)
}

export async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new UampError('invalid_request', `${file} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

/** Replaces `$NAME` by what the environment has. */
export function withSecrets(
  { tokens = {} }: Config,
  env: Readonly<Record<string, string | undefined>>,
  file: string,
): Readonly<Record<string, string>> {
  const resolved = Object.entries(tokens).map(([name, given]) => {
    const variable = /^\$(\w+)$/.exec(given)?.[1]
    const secret = variable === undefined ? given : env[variable]
    if (secret) return [name, secret] as const
    const problem =
      variable === undefined ? 'is empty: write the secret, or "$NAME"' : `wants ${variable}, which the environment lacks: set it`
    throw new UampError('invalid_request', `${file}: tokens.${name} ${problem}`)
  })
  return Object.fromEntries(resolved)
}

function explainKeys(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined
  const unknown = issue.keys.map((key) => `"${key}"`).join(', ')
  return `${unknown} is not known here: there are ${Object.keys(Config.def.shape).join(', ')}`
}
