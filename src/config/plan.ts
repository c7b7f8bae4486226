import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { agentFile, agentsIn } from '../cli/agents.ts'
import type { Entry } from './check.ts'
import { closing } from './closing.ts'
import { planModel } from './plan-model.ts'
import { held, type Built, type Plan, type PlanContext } from './planned.ts'
import { configError } from './source.ts'

/** Throws where it cannot become anything: a key or a file is missing, a provider is not known. */
export function planEntry(entry: Entry, context: PlanContext): Plan {
  switch (entry.kind) {
    case 'agent': {
      // A config that is a module is loaded anew when it has changed, and with it the agents that it holds.
      const print = `agent ${entry.agent.name} ${context.modules.version(context.source.file)}`
      return { entry, print, files: [], needs: [], build: async () => held([entry.agent]) }
    }
    case 'module':
      return planModule(entry, context)
    case 'remote':
      return entry.entry.remote.acp ? planAcp(entry, entry.entry.remote.acp, context) : planRemote(entry, context)
    case 'model':
      return planModel(entry, context)
  }
}

function planModule(entry: Entry & { kind: 'module' }, { source, modules }: PlanContext): Plan {
  const path = resolve(dirname(source.file), entry.file)
  const stats = statSync(path, { throwIfNoEntry: false })
  const file = stats?.isDirectory() ? agentFile(path) : path
  if (!stats || file === undefined) {
    const message = `is "${entry.file}", but there is no agent at ${path}: paths are relative to the config`
    throw configError(source, [{ path: entry.path, message }])
  }
  const build = async () => held(agentsIn(await modules.load(file), file))
  return { entry, print: `module ${modules.version(file)}`, files: [file], needs: [], build }
}

type AcpProgram = NonNullable<(Entry & { kind: 'remote' })['entry']['remote']['acp']>

function planAcp(
  entry: Entry & { kind: 'remote' },
  { folder, args, env, ...program }: AcpProgram,
  { source, variables, log }: PlanContext,
): Plan {
  const { name, description } = entry.entry
  const path = [...entry.path, 'remote', 'acp']
  const options = {
    ...described({ name, description }),
    ...(Object.fromEntries(Object.entries(program).filter(([, value]) => value !== undefined)) as Pick<AcpProgram, 'command'>),
    args: (args ?? []).map((arg, index) => variables.in(arg, [...path, 'args', index])),
    env: variables.inAll(env ?? {}, [...path, 'env']),
    folder: resolve(dirname(source.file), variables.in(folder, [...path, 'folder'])),
  }
  const build = async (): Promise<Built> => {
    const { remoteAcp } = await import('../remotes/acp/index.ts')
    const agent = remoteAcp({ ...options, log })
    return closing(agent, () => agent.close())
  }
  return { entry, print: JSON.stringify(['acp', options]), files: [], needs: [], build }
}

function described({ name, description }: { name: string; description?: string | undefined }): { name: string; description?: string } {
  return { name, ...(description !== undefined && { description }) }
}

function planRemote({ path: at, ...entry }: Entry & { kind: 'remote' }, { variables }: PlanContext): Plan {
  const { name, description, remote } = entry.entry
  const path = [...at, 'remote']
  const token = variables.secret({ text: remote.token, env: remote.tokenEnv }, { path, field: 'token' })
  const url = variables.in(remote.url, [...path, 'url'])
  const common = { name, url, ...(description !== undefined && { description }) }
  const headers = remote.headers && variables.inAll(remote.headers, [...path, 'headers'])
  const build = async (): Promise<Built> => {
    if (remote.protocol === 'a2a') {
      const { remoteA2a } = await import('../remotes/a2a/index.ts')
      return held([remoteA2a({ ...common, ...(token !== undefined && { token }), ...(headers && { headers }) })])
    }
    if (remote.protocol === 'ag-ui') {
      const { remoteAgUi } = await import('../remotes/ag-ui/index.ts')
      return held([remoteAgUi({ ...common, ...(token !== undefined && { token }), ...(headers && { headers }) })])
    }
    if (remote.protocol === 'completions') {
      const { remoteCompletions } = await import('../remotes/completions/index.ts')
      const { model = '' } = remote
      return held([remoteCompletions({ ...common, model, ...(token !== undefined && { apiKey: token }), ...(headers && { headers }) })])
    }
    const { remoteEvents } = await import('../remotes/events/index.ts')
    const { agent } = remote
    return held([remoteEvents({ ...common, ...(token !== undefined && { token }), ...(agent !== undefined && { agent }) })])
  }
  return { entry: { path: at, ...entry }, print: JSON.stringify(['remote', common, remote, token, headers]), files: [], needs: [], build }
}
