import { homedir } from 'node:os'
import { join } from 'node:path'
import { agentAtRoot } from '../../core/edge/choose-agent.ts'
import type { Keys } from '../../core/ports/keys.ts'
import type { Store } from '../../core/ports/store.ts'
import { UampError } from '../../protocol/errors.ts'
import { assemble, type AssembleContext } from '../../config/assemble.ts'
import { Modules } from '../../config/modules.ts'
import type { Source } from '../../config/source.ts'
import { report } from '../report.ts'
import { loadSetup, type Setup } from '../setup.ts'
import { onSignal, STOP } from '../signals.ts'
import { takeStdout } from '../stdout.ts'
import { secretOf } from '../tokens.ts'
import { makeFolder } from '../../serve/make-folder.ts'

export interface AcpFlags {
  readonly agent?: string
  readonly url?: string
  readonly protocol?: string
  readonly model?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly data?: string
}

/** An agent for the IDE that started us: ACP on standard input and output, until the input ends. */
export async function acp(file: string | undefined, { version, ...flags }: AcpFlags & { readonly version: string }): Promise<number> {
  const output = takeStdout()
  const { env, stdin: input } = process
  onSignal(STOP, () => void input.destroy())
  const { url } = flags
  const token = secretOf(flags, env)
  if (url !== undefined && /^wss?:/.test(url)) {
    const { relay } = await import('../acp-relay.ts')
    return relay({ url, token, input, output })
  }
  const { pinoLog } = await import('../../server/node/log.ts')
  const log = pinoLog({ level: env['UAMP_DEBUG'] === '1' ? 'debug' : 'warn' })
  const context: AssembleContext = { env, modules: new Modules(), log }
  const setup = await (url === undefined
    ? loadSetup(file, context)
    : remote(url, { ...flags, ...(token !== undefined && { token }) }, context))
  try {
    const agent = agentOf(setup, url === undefined ? flags.agent : undefined)
    const { store, keys } = await openStore(flags.data || env['UAMP_DATA'] || setup.settings.data || join(homedir(), '.uamp'))
    const { acpOverStdio } = await import('../../serve/acp-stdio.ts')
    await acpOverStdio({ agents: setup.agents, agent, store, keys, log, version, input, output })
    return 0
  } finally {
    for (const built of setup.assembly?.built.values() ?? []) await built.close()
  }
}

/** An agent elsewhere, as a config would name it. */
async function remote(url: string, { agent, protocol, model, token }: AcpFlags, context: AssembleContext): Promise<Setup> {
  const given = { url, protocol, model, token, agent: protocol === undefined || protocol === 'events' ? agent : undefined }
  const there = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const source: Source = { file: '--url', value: { agents: [{ name: 'remote', remote: there }] }, lineOf: () => undefined }
  const assembly = await assemble(source, context)
  return { agents: assembly.agents, settings: {}, notes: [], assembly }
}

function agentOf({ agents, settings }: Setup, wanted: string | undefined): string {
  const names = agents.map(({ name }) => name)
  const name = wanted ?? agentAtRoot(names, settings.defaultAgent)
  if (name !== undefined && names.includes(name)) return name
  const choice = names.map((each) => `--agent ${each}`).join(', ')
  throw new UampError('invalid_request', `${name === undefined ? 'Choose an agent' : `There is no agent "${name}". Choose one`}: ${choice}`)
}

/** One process owns a store. An IDE with two windows starts two: the second one works, and remembers nothing. */
async function openStore(data: string): Promise<{ readonly store: Store; readonly keys: Keys }> {
  const { memoryStore } = await import('../../stores/memory.ts')
  const { fileKeys, passingKeys } = await import('../../stores/file-keys.ts')
  const nothing = () => ({ store: memoryStore(), keys: passingKeys() })
  if (data === 'memory') return nothing()
  try {
    const { sqliteStore } = await import('../../stores/sqlite.ts')
    const { checkFolder } = await import('../../stores/sqlite-folder.ts')
    const path = join(data, 'uamp.db')
    await checkFolder(path)
    makeFolder(data)
    const keys = fileKeys({ path: join(data, 'uamp.key'), key: process.env['UAMP_KEY'] })
    const onLoss = (loss: string) => report(new Error(`Data is missing: ${loss}`))
    return { store: sqliteStore({ path, onError: report, onLoss }), keys }
  } catch (thrown) {
    report(new Error(`Sessions are not kept: ${thrown instanceof Error ? thrown.message : String(thrown)}`))
    return nothing()
  }
}
