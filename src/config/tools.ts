import type { Skill, Tool } from '../core/ports/skill.ts'
import { isRecord } from '../protocol/json.ts'
import { isAgent } from '../cli/agents.ts'
import type { PlanContext } from './planned.ts'
import { configError, shown, type Path } from './source.ts'

const PARTS = ['tools', 'handlers', 'observers', 'prompts', 'hooks', 'routes']
const EXAMPLE = '`export const add = { name, description, parameters, run }`'

export interface FoundTools {
  readonly tools: readonly Tool[]
  readonly skills: readonly Skill[]
}

/** All tools and skills that a module exports, alone or in arrays, under whatever name. */
export async function toolsIn(file: string, { modules, source }: Pick<PlanContext, 'modules' | 'source'>, path: Path): Promise<FoundTools> {
  const module = await modules.load(file).catch((cause: unknown) => {
    throw configError(source, [{ path, message: `cannot be used: ${(cause as Error).message}` }], cause)
  })
  const exported = [...new Set(Object.values(module).flat())]
  const tools = exported.filter(isTool)
  const skills = exported.filter(isSkill)
  if (tools.length > 0 || skills.length > 0) return { tools, skills }
  throw configError(source, [{ path, message: `is ${shown(file)}, which exports no tool: add one, as in ${EXAMPLE}` }])
}

/** By their form: they may come from another copy of this package. */
function isTool(value: unknown): value is Tool {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['run'] === 'function' && !isAgent(value)
}

function isSkill(value: unknown): value is Skill {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['run'] !== 'function' && PARTS.some((part) => part in value)
}
