import type { Ability } from '../core/ports/agent.ts'
import type { Skill, Tool } from '../core/ports/skill.ts'

/** An agent's abilities as others see them: one for each of its own tools, and one for each skill that has tools. */
export function abilitiesOf(tools: readonly Tool[], skills: readonly Skill[]): readonly Ability[] {
  const own = tools.map(({ name, description }) => ({
    id: name,
    name,
    description: description ?? `Uses the tool ${name}`,
    tags: ['tool'],
  }))
  const composed = skills.flatMap(({ name, description, tools: its = [] }) => {
    if (its.length === 0 && description === undefined) return []
    const told = description ?? its.map((tool) => tool.description ?? tool.name).join('; ')
    return [{ id: name, name, description: told, tags: its.length > 0 ? its.map((tool) => tool.name) : ['skill'] }]
  })
  // A tool and a skill with one name are one ability.
  return [...new Map([...composed, ...own].map((ability) => [ability.id, ability])).values()]
}
