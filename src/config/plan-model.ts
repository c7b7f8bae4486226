import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { PriceTable } from '../agents/llm/index.ts'
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
import { configError, shown, type Path } from './source.ts'

type ModelPlan = Entry & { readonly kind: 'model' }

/** Plans an agent that is a model. Checks everything that can be checked before the agent is made. */
export function planModel(planned: ModelPlan, context: PlanContext): Plan {
  const { source, models, modules, config } = context
  const { path, entry } = planned
  const model = models.find(entry.model, [...path, 'model'])
  const fallbacks = (entry.fallbacks ?? []).map((name, index) => models.find(name, [...path, 'fallbacks', index]))
  const files = (entry.tools ?? []).map((name, index) => {
    const file = resolve(dirname(source.file), name)
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
    const message = `is "${name}", but there is no file ${file}: paths are relative to the config`
    throw configError(source, [{ path: [...path, 'tools', index], message }])
  })
  const needs = entry.handoffs ?? []
  return {
    entry: planned,
    print: JSON.stringify(['model', entry, model, fallbacks, config.prices, files.map((file) => modules.version(file))]),
    files,
    needs,
    build: async (others) => {
      const handoffs = needs.map((name, index) => {
        const agent = others.get(name)
        if (agent) return agent
        throw configError(source, [{ path: [...path, 'handoffs', index], message: `is "${name}", but there is no agent with that name` }])
      })
      return buildModel(planned, context, { model, fallbacks, handoffs, files })
    },
  }
}

interface Parts {
  readonly model: NamedModel
  readonly fallbacks: readonly NamedModel[]
  readonly handoffs: readonly AgentPort[]
  readonly files: readonly string[]
}

async function buildModel({ path, entry }: ModelPlan, context: PlanContext, { model, fallbacks, handoffs, files }: Parts): Promise<Built> {
  const { models, config, log } = context
  const { name, description, protocols, instructions, settings, maxSteps } = entry
  const tools: Tool[] = []
  const skills: Skill[] = []
  for (const [index, file] of files.entries()) {
    const found = await toolsIn(file, context, [...path, 'tools', index])
    tools.push(...found.tools)
    skills.push(...found.skills)
  }
  const servers = await toolServers(entry.mcp ?? [], context, [...path, 'mcp'])
  try {
    const { llmAgent } = await import('../agents/llm/index.ts')
    const agent = llmAgent({
      name,
      ...present({ description, protocols, instructions, maxSteps, prices: config.prices as PriceTable | undefined }),
      model: await models.make(model, settings),
      fallbacks: await Promise.all(fallbacks.map((fallback) => models.make(fallback, settings))),
      tools,
      skills: [...skills, ...servers.skills],
      handoffs,
      log,
    })
    await agent.ready
    return servers.skills.length === 0 ? held([agent]) : closing(agent, servers.close)
  } catch (thrown) {
    await servers.close()
    // The agent knows what is wrong, such as two tools with one name. Only this place knows where in the config.
    throw thrown instanceof UampError
      ? configError(context.source, [{ path, message: `cannot be made: ${thrown.message}` }], thrown)
      : thrown
  }
}

const PARTS = ['tools', 'handlers', 'observers', 'prompts', 'hooks', 'routes']
const EXAMPLE = '`export const add = { name, description, parameters, run }`'

interface FoundTools {
  readonly tools: readonly Tool[]
  readonly skills: readonly Skill[]
}

/** All tools and skills that a module exports, alone or in arrays, under any name. */
async function toolsIn(file: string, { modules, source }: Pick<PlanContext, 'modules' | 'source'>, path: Path): Promise<FoundTools> {
  const module = await modules.load(file).catch((cause: unknown) => {
    throw configError(source, [{ path, message: `cannot be used: ${(cause as Error).message}` }], cause)
  })
  const exported = [...new Set(Object.values(module).flat())]
  const tools = exported.filter(isTool)
  const skills = exported.filter(isSkill)
  if (tools.length > 0 || skills.length > 0) return { tools, skills }
  throw configError(source, [{ path, message: `is ${shown(file)}, which exports no tool: add one, as in ${EXAMPLE}` }])
}

/** Goes by the shape, because a tool may come from another copy of this package. */
function isTool(value: unknown): value is Tool {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['run'] === 'function' && !isAgent(value)
}

function isSkill(value: unknown): value is Skill {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['run'] !== 'function' && PARTS.some((part) => part in value)
}

interface ToolServers {
  readonly skills: readonly McpSkill[]
  close(): Promise<void>
}

/** Starts all servers. If one fails, the others are closed again. */
async function toolServers(entries: readonly McpEntry[], context: PlanContext, path: Path): Promise<ToolServers> {
  const started = await Promise.allSettled(entries.map((entry, index) => start(entry, context, [...path, index])))
  const skills = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const close = async (): Promise<void> => void (await Promise.allSettled(skills.map((skill) => skill.close())))
  const failed = started.find((result) => result.status === 'rejected')
  if (!failed) return { skills, close }
  await close()
  throw failed.reason
}

async function start(entry: McpEntry, context: PlanContext, path: Path): Promise<McpSkill> {
  const { source, log } = context
  const { name = `mcp-${path.at(-1)}`, prefix, only, needsApproval } = entry
  const server = serverOf(entry, context, path)
  const { mcpSkill } = await import('../skills/mcp/index.ts')
  try {
    return await mcpSkill({ name, server, log, ...present({ prefix, only, needsApproval }) })
  } catch (cause) {
    throw configError(source, [{ path, message: `does not work: ${telling((cause as Error).message)}` }], cause)
  }
}

/** The line that says why, among all that a program printed while it went down. */
function telling(message: string): string {
  const lines = message.split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? ''
}

function serverOf({ command, args = [], env, cwd = '.', url = '', headers }: McpEntry, context: PlanContext, path: Path): McpServer {
  const { variables, source } = context
  if (command === undefined) {
    return { url: variables.in(url, [...path, 'url']), ...(headers && { headers: variables.inAll(headers, [...path, 'headers']) }) }
  }
  return {
    command,
    args: args.map((arg, index) => variables.in(arg, [...path, 'args', index])),
    cwd: resolve(dirname(source.file), cwd),
    ...(env && { env: variables.inAll(env, [...path, 'env']) }),
  }
}
