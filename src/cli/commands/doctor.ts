import { resolve } from 'node:path'
import { findConfig } from '../../config/agents.ts'
import { examine, type AssembleContext, type Examined } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import type { NamedModel } from '../../config/models.ts'
import { PROVIDERS } from '../../providers/by-name.ts'
import { shown } from '../../config/shown.ts'
import { isConfigError, mistakesOf, readSource } from '../../config/source.ts'
import { fileAt, isConfigFile, loadSetup } from '../setup.ts'
import { ok, wrong, wrongBy, type Check } from '../doctor/check.ts'
import { checkDataFolder } from '../doctor/data.ts'
import { checkClock, checkNode, checkPort } from '../doctor/machine.ts'
import { checkModels } from '../doctor/models.ts'
import { checkTls } from '../doctor/tls.ts'
import { harmless, painter } from '../print.ts'
import { tlsFrom, type TlsFlags } from '../tls-flags.ts'

export interface DoctorFlags extends TlsFlags {
  readonly config?: string
  readonly port?: number
  readonly host?: string
  readonly data?: string
  readonly json?: true
}

type Found = Partial<Omit<Examined, 'mistakes'>> & { readonly checks: readonly Check[] }

/** Checks everything that a server needs, and changes nothing. Exit code 1 if something is wrong. */
export async function doctor(file: string | undefined, flags: DoctorFlags): Promise<number> {
  const { env } = process
  const config = await checkFile(file ?? flags.config, { env, modules: new Modules(), log: () => undefined })
  const data = flags.data || env['UAMP_DATA'] || config.settings?.data || '.uamp'
  const files = tlsFrom(flags, config.settings?.tls)
  const address = { port: flags.port ?? config.settings?.port ?? 8787, host: flags.host ?? config.settings?.host ?? '127.0.0.1' }
  const [stored, tls, port, models] = await Promise.all([
    checkDataFolder(data),
    checkTls(files),
    checkPort({ ...address, secure: files !== undefined }),
    checkModels(config.models ?? []),
  ])
  const checks = [checkNode(), ...config.checks, ...keyChecks(config), ...models.checks, ...stored, ...tls, port, checkClock(models.times)]
  const healthy = checks.every(({ state }) => state !== 'wrong')
  process.stdout.write(flags.json ? `${JSON.stringify({ ok: healthy, checks })}\n` : page(checks))
  return healthy ? 0 : 1
}

async function checkFile(given: string | undefined, context: AssembleContext): Promise<Found> {
  try {
    const found = given ?? findConfig('.')
    if (found === undefined) return withoutFile(context)
    const file = fileAt(resolve(found))
    if (!(await isConfigFile(file, context.modules))) {
      const { agents } = await loadSetup(file, context)
      return { checks: [ok('config', `${shown(file)} exports ${agents.map(({ name }) => name).join(', ')}`)] }
    }
    const { mistakes, ...rest } = await examine(await readSource(file, context.modules), context)
    return { ...rest, checks: mistakes.length === 0 ? [ok('config', `${shown(file)} has no mistakes`)] : mistakes.map(mistake) }
  } catch (thrown) {
    if (!isConfigError(thrown)) return { checks: [wrongBy('config', thrown, 'correct the file')] }
    return { checks: mistakesOf(thrown as Error).map(mistake) }
  }
}

/** A mistake of a config says itself what to do. */
function mistake(found: string): Check {
  return { name: 'config', state: 'wrong', found }
}

/** Without a file, a model of each provider with a key is served. */
function withoutFile({ env }: AssembleContext): Found {
  const models = (['openai', 'anthropic', 'google'] as const).flatMap((type): NamedModel[] => {
    const { keys, address, model } = PROVIDERS[type]
    const apiKey = keys.map((key) => env[key]).find(Boolean)
    const baseUrl = env[address]
    return apiKey ? [{ type, model, provider: { name: type, apiKey, ...(baseUrl && { baseUrl }) } }] : []
  })
  const served = ['demo', ...models.map(({ provider }) => provider.name)].join(', ')
  return { models, checks: [ok('config', `none here, so that ${served} would be served; \`npx uamp init\` writes one`)] }
}

function keyChecks({ variables }: Found): Check[] {
  return [...(variables ?? [])].map(([name, set]) =>
    set ? ok('keys', `${name} is set`) : wrong('keys', `${name} is not set`, `\`export ${name}=…\`, or write ${name}=… into .env`),
  )
}

const MARKS = { ok: ['green', 'ok   '], note: ['yellow', 'note '], wrong: ['red', 'wrong'] } as const

function page(checks: readonly Check[]): string {
  const paint = painter(process.stdout)
  const lines = checks.map(({ name, state, found, fix }) => {
    const [colour, mark] = MARKS[state]
    return `${paint(colour, mark)} ${name.padEnd(7)} ${harmless(found)}${fix === undefined ? '' : `: ${harmless(fix)}`}`
  })
  return `${lines.join('\n')}\n`
}
