import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { PriceTable } from '../agents/llm/index.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Skill, Tool } from '../core/ports/skill.ts'
import { UampError } from '../protocol/errors.ts'
import type { Entry } from './check.ts'
import type { NamedModel } from './models.ts'
import { held, type Built, type Plan, type PlanContext } from './planned.ts'
import { closing } from './closing.ts'
import { toolServers } from './mcp.ts'
import { configError } from './source.ts'
import { toolsIn } from './tools.ts'

type ModelPlan = Entry & { readonly kind: 'model' }

/** An agent that is a model: everything that can be known without making it is checked here. */
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
        throw configError(source, [{ path: [...path, 'handoffs', index], message: `is "${name}", but there is no agent of that name` }])
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
  const { name, description, instructions, settings, maxSteps } = entry
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
      ...(description !== undefined && { description }),
      ...(instructions !== undefined && { instructions }),
      ...(maxSteps !== undefined && { maxSteps }),
      ...(config.prices && { prices: config.prices as PriceTable }),
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
    // Two tools of one name, say: the agent knows what is wrong, and here is known where.
    throw thrown instanceof UampError
      ? configError(context.source, [{ path, message: `cannot be made: ${thrown.message}` }], thrown)
      : thrown
  }
}
