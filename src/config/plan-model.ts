import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { PriceTable } from '../agents/llm/index.ts'
import { didYouMean } from '../core/basics/nearest.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Skill, Tool } from '../core/ports/skill.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'
import type { McpServer, McpSkill } from '../skills/mcp/index.ts'
import { present } from '../wire/fields.ts'
import { isAgent } from './agents.ts'
import type { Entry } from './check.ts'
import type { NamedModel } from './models.ts'
import { closing, held, type Built, type Plan, type PlanContext } from './planned.ts'
import type { McpEntry } from './schema.ts'
import { shown } from './shown.ts'
import type { Path } from './source.ts'

type ModelPlan = Entry & { readonly kind: 'model' }

/** Plans an agent that is a model. Checks everything that can be checked before programs are started. */
export async function planModel(planned: ModelPlan, context: PlanContext): Promise<Plan | undefined> {
  const { models, modules, config } = context
  const { path, entry } = planned
  const model = models.find(entry.model, [...path, 'model'])
  const fallbacks = (entry.fallbacks ?? []).map((name, index) => models.find(name, [...path, 'fallbacks', index]))
  const servers = (entry.mcp ?? []).map((each, index): ToolServer => {
    const at = [...path, 'mcp', index]
    return { path: at, entry: each, server: serverOf(each, context, at) }
  })
  const found: FoundTools[] = []
  const files: string[] = []
  for (const [index, name] of (entry.tools ?? []).entries()) {
    const file = toolFile(name, context, [...path, 'tools', index])
    const tools = file === undefined ? undefined : await toolsIn(file, context, [...path, 'tools', index])
    if (file !== undefined) files.push(file)
    if (tools) found.push(tools)
  }
  const needs = entry.handoffs ?? []
  const known = fallbacks.filter((fallback) => fallback !== undefined)
  if (!model) return undefined
  return {
    entry: planned,
    print: JSON.stringify(['model', entry, model, fallbacks, config.prices, files.map((file) => modules.print(file))]),
    files,
    needs,
    build: async (others) => {
      const handoffs = needs.flatMap((name) => others.get(name) ?? [])
      // One that could not be built is reported at its own place.
      if (handoffs.length < needs.length) return undefined
      return buildModel(planned, context, { model, fallbacks: known, handoffs, servers, found })
    },
  }
}

function toolFile(name: string, { source, modules, problems }: PlanContext, path: Path): string | undefined {
  const file = resolve(dirname(source.file), name)
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
  modules.note(file)
  problems.add(path, `is "${name}", but there is no file ${file}: paths are relative to the config`)
  return undefined
}

interface Parts {
  readonly model: NamedModel
  readonly fallbacks: readonly NamedModel[]
  readonly handoffs: readonly AgentPort[]
  readonly servers: readonly ToolServer[]
  readonly found: readonly FoundTools[]
}

async function buildModel(
  { path, entry }: ModelPlan,
  context: PlanContext,
  { model, fallbacks, handoffs, servers, found }: Parts,
): Promise<Built | undefined> {
  const { models, config, log, problems } = context
  const { name, description, protocols, instructions, settings, maxSteps, price } = entry
  const started = await startAll(servers, context)
  if (!started) return undefined
  try {
    const { llmAgent } = await import('../agents/llm/index.ts')
    const agent = llmAgent({
      name,
      ...(price && { price: present(price) }),
      ...present({ description, protocols, instructions, maxSteps, prices: config.prices as PriceTable | undefined }),
      model: await models.make(model, settings),
      fallbacks: await Promise.all(fallbacks.map((fallback) => models.make(fallback, settings))),
      tools: found.flatMap(({ tools }) => tools),
      skills: [...found.flatMap(({ skills }) => skills), ...started.skills],
      handoffs,
      log,
    })
    await agent.ready
    checkToolNames(agent.tools ?? [], entry, { path, problems })
    return started.skills.length === 0 ? held([agent]) : closing(agent, started.close)
  } catch (thrown) {
    await started.close()
    if (!(thrown instanceof UampError)) throw thrown
    // The agent knows what is wrong, such as two tools with one name. Only this place knows where in the config.
    problems.add(path, `cannot be made: ${thrown.message}`, thrown)
    return undefined
  }
}

/** A tool whose name is misspelt would be free. */
function checkToolNames(
  tools: readonly Tool[],
  { price }: ModelPlan['entry'],
  { path, problems }: Pick<ModelPlan, 'path'> & Pick<PlanContext, 'problems'>,
): void {
  const names = tools.map(({ name }) => name)
  for (const name of Object.keys(price?.tools ?? {})) {
    if (!names.includes(name)) problems.add([...path, 'price', 'tools', name], `is no tool of this agent${didYouMean(name, names)}`)
  }
}

const PARTS = ['tools', 'handlers', 'observers', 'prompts', 'hooks', 'routes']
const EXAMPLE = '`export const add = { name, description, parameters, run }`'

interface FoundTools {
  readonly tools: readonly Tool[]
  readonly skills: readonly Skill[]
}

/** All tools and skills that a module exports, alone or in arrays, under any name. */
async function toolsIn(file: string, { modules, problems }: PlanContext, path: Path): Promise<FoundTools | undefined> {
  try {
    const exported = [...new Set(Object.values(await modules.load(file)).flat())]
    const tools = exported.filter(isTool)
    const skills = exported.filter(isSkill)
    if (tools.length > 0 || skills.length > 0) return { tools, skills }
    problems.add(path, `is ${shown(file)}, which exports no tool: add one, as in ${EXAMPLE}`)
  } catch (thrown) {
    problems.add(path, `cannot be used: ${(thrown as Error).message}`, thrown)
  }
  return undefined
}

/** Goes by the shape, because a tool may come from another copy of this package. */
function isTool(value: unknown): value is Tool {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['run'] === 'function' && !isAgent(value)
}

function isSkill(value: unknown): value is Skill {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['run'] !== 'function' && PARTS.some((part) => part in value)
}

/** An MCP server of the config. */
interface ToolServer {
  readonly path: Path
  readonly entry: McpEntry
  readonly server: McpServer
}

interface ToolServers {
  readonly skills: readonly McpSkill[]
  close(): Promise<void>
}

/** Starts all servers. If one fails, the others are closed again. */
async function startAll(servers: readonly ToolServer[], context: PlanContext): Promise<ToolServers | undefined> {
  const started = await Promise.all(servers.map((server) => start(server, context)))
  const skills = started.filter((skill) => skill !== undefined)
  const close = async (): Promise<void> => void (await Promise.allSettled(skills.map((skill) => skill.close())))
  if (skills.length === started.length) return { skills, close }
  await close()
  return undefined
}

async function start({ path, entry, server }: ToolServer, { log, problems }: PlanContext): Promise<McpSkill | undefined> {
  const { name = `mcp-${path.at(-1)}`, prefix, only, needsApproval, prices } = entry
  const { mcpSkill } = await import('../skills/mcp/index.ts')
  try {
    return await mcpSkill({ name, server, log, ...present({ prefix, only, needsApproval, prices }) })
  } catch (cause) {
    problems.add(path, `does not work: ${telling((cause as Error).message)}`, cause)
    return undefined
  }
}

/** The line that says why, among all that a program printed while it went down. */
function telling(message: string): string {
  const lines = message.split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? ''
}

function serverOf({ command, args = [], env, cwd = '.', url = '', headers }: McpEntry, context: PlanContext, path: Path): McpServer {
  const { variables, source, problems } = context
  if (command === undefined) {
    if (url !== '' && !URL.canParse(variables.ifComplete(url) ?? 'http://a'))
      problems.add([...path, 'url'], 'is not an address: write it as in "https://tools.example/mcp"')
    return { url: variables.in(url, [...path, 'url']), ...(headers && { headers: variables.inAll(headers, [...path, 'headers']) }) }
  }
  return {
    command,
    args: args.map((arg, index) => variables.in(arg, [...path, 'args', index])),
    cwd: resolve(dirname(source.file), cwd),
    ...(env && { env: variables.inAll(env, [...path, 'env']) }),
  }
}
