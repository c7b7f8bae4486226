import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fieldsOf, jsonIn } from '../protocol/json.ts'
import type { RemoteAuth } from '../upstream/outbound-auth.ts'
import type { ClientAuth } from '../upstream/token-endpoint.ts'
import { present } from '../wire/fields.ts'
import { checkHeaders } from './headers.ts'
import { agentFile, agentsIn } from './agents.ts'
import type { Entry } from './check.ts'
import { planModel } from './plan-model.ts'
import type { RemoteAuthEntry } from './schema.ts'
import type { Path } from './source.ts'
import { closing, held, type Built, type Plan, type PlanContext } from './planned.ts'

/** Plans one entry. Undefined if it cannot be planned: a file is missing or does not load, or a provider is unknown. */
export async function planEntry(entry: Entry, context: PlanContext): Promise<Plan | undefined> {
  switch (entry.kind) {
    case 'agent': {
      // A config that is a module is loaded again when it changes, and brings new agents.
      const print = `agent ${entry.agent.name} ${context.modules.print(context.source.file)}`
      return { entry, print, files: [], needs: [], build: async () => held([entry.agent]) }
    }
    case 'module':
      return planModule(entry, context)
    case 'remote':
      return offered(entry, entry.entry.remote.acp ? planAcp(entry, entry.entry.remote.acp, context) : planRemote(entry, context))
    case 'model':
      return planModel(entry, context)
  }
}

/** The same plan, for agents that are offered through the protocols of their entry. */
function offered({ entry: { protocols } }: RemoteEntry, plan: Plan): Plan {
  if (!protocols) return plan
  const build: Plan['build'] = async (others) => {
    const built = await plan.build(others)
    // They were made for this plan alone.
    for (const agent of built?.agents ?? []) Object.assign(agent, { protocols })
    return built
  }
  return { ...plan, print: JSON.stringify([plan.print, protocols]), build }
}

async function planModule(entry: Entry & { kind: 'module' }, { source, modules, problems }: PlanContext): Promise<Plan | undefined> {
  const path = resolve(dirname(source.file), entry.file)
  const stats = statSync(path, { throwIfNoEntry: false })
  const file = stats?.isDirectory() ? agentFile(path) : path
  if (!stats || file === undefined) {
    modules.note(path)
    problems.add(entry.path, `is "${entry.file}", but there is no agent at ${path}: paths are relative to the config`)
    return undefined
  }
  try {
    const agents = agentsIn(await modules.load(file), file)
    const print = `module ${file} ${modules.print(file)}`
    return { entry, print, files: [file], needs: [], brings: agents.map(({ name }) => name), build: async () => held(agents) }
  } catch (thrown) {
    problems.add(entry.path, `cannot be used: ${(thrown as Error).message}`, thrown)
    return undefined
  }
}

type RemoteEntry = Entry & { kind: 'remote' }
type AcpProgram = NonNullable<RemoteEntry['entry']['remote']['acp']>

function planAcp(entry: RemoteEntry, { folder, args, env, ...program }: AcpProgram, { source, variables, log }: PlanContext): Plan {
  const { name, description, price } = entry.entry
  const path = [...entry.path, 'remote', 'acp']
  const options = {
    name,
    ...present({ description, ...program }),
    ...(price && { price: present(price) }),
    command: program.command,
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

function planRemote(entry: RemoteEntry, { variables, problems }: PlanContext): Plan {
  const { name, description, price, remote } = entry.entry
  const path = [...entry.path, 'remote']
  const token = variables.secret({ text: remote.token, env: remote.tokenEnv }, { path, field: 'token' })
  const headers = remote.headers && variables.inAll(remote.headers, [...path, 'headers'])
  const url = variables.in(remote.url, [...path, 'url'])
  if (!URL.canParse(url) && !problems.has([...path, 'url']))
    problems.add([...path, 'url'], 'is not an address: write it as in "https://agents.example"')
  if (headers) checkHeaders(headers, [...path, 'headers'], problems)
  const auth = remote.auth && planAuth(remote.auth, [...path, 'auth'], { variables, problems })
  const common = { name, url, ...present({ description, token, headers, auth, price: price && present(price) }) }
  const build = async (): Promise<Built> => {
    switch (remote.protocol) {
      case 'a2a':
        return held([(await import('../remotes/a2a/index.ts')).remoteA2a(common)])
      case 'ag-ui':
        return held([(await import('../remotes/ag-ui/index.ts')).remoteAgUi(common)])
      case 'envelope':
        return held([(await import('../remotes/envelope/index.ts')).remoteEnvelope(common)])
      case 'completions': {
        const { remoteCompletions } = await import('../remotes/completions/index.ts')
        return held([remoteCompletions({ ...common, model: remote.model ?? '', ...present({ apiKey: token }) })])
      }
      case 'events':
        return held([(await import('../remotes/events/index.ts')).remoteEvents({ ...common, ...present({ agent: remote.agent }) })])
      case undefined: {
        const { remoteAgent } = await import('../remotes/agent.ts')
        return held([remoteAgent({ ...common, ...present({ agent: remote.agent, model: remote.model }) })])
      }
    }
  }
  return { entry, print: JSON.stringify(['remote', common, remote]), files: [], needs: [], build }
}

/** With its secrets from the environment. */
function planAuth(entry: RemoteAuthEntry, path: Path, { variables, problems }: Pick<PlanContext, 'variables' | 'problems'>): RemoteAuth {
  const { scope } = entry
  const target = entry.target === undefined ? undefined : variables.in(entry.target, [...path, 'target'])
  if (entry.type === 'self') return { type: 'self', ...present({ as: entry.as, scope, target }) }
  const { clientId, clientSecret: text, clientSecretEnv: env, privateKey: given, exchange } = entry
  const clientSecret = variables.secret({ text, env }, { path, field: 'clientSecret' })
  const tokenUrl = entry.tokenUrl === undefined ? undefined : variables.in(entry.tokenUrl, [...path, 'tokenUrl'])
  if (tokenUrl !== undefined && !/^https?:\/\//.test(tokenUrl) && !problems.has([...path, 'tokenUrl']))
    problems.add([...path, 'tokenUrl'], 'is not an address: write it as in "https://login.example/oauth/token"')
  const privateKey = given === undefined ? undefined : keyIn(given, [...path, 'privateKey'], { variables, problems })
  const id = variables.in(clientId, [...path, 'clientId'])
  return { type: 'client', clientId: id, ...present({ clientSecret, privateKey, tokenUrl, scope, target, exchange }) }
}

type ClientKey = NonNullable<ClientAuth['privateKey']>

/** A JWK, or a text that is one as JSON. */
function keyIn(
  given: string | object,
  path: Path,
  { variables, problems }: Pick<PlanContext, 'variables' | 'problems'>,
): ClientKey | undefined {
  const key = typeof given === 'string' ? jsonIn(variables.in(given, path)) : given
  const { kty, d } = fieldsOf(key)
  if (typeof kty === 'string' && typeof d === 'string') return key as ClientKey
  if (!problems.has(path)) problems.add(path, 'is no private key: it must be a JWK with "kty" and "d"')
  return undefined
}
