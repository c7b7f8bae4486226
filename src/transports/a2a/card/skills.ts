import type { Ability, AgentPort } from '../../../core/ports/agent.ts'
import type { AgentSkill } from './model.ts'

/** As many are shown: a card is read before anything else, by everybody. */
const SKILLS = 128

/** What the agent says it is good at, else its tools and what it provides, else that one can talk to it. Never empty: A2A 1.0 §5.7. */
export function skillsOf(agent: AgentPort): readonly AgentSkill[] {
  const { abilities = [], capabilities } = agent
  const tools = (capabilities.tools?.built_in_tools ?? []).map((name) => named(name, `Uses the tool ${name}`, 'tool'))
  const provided = (capabilities.provides ?? []).map((name) => named(name, `Provides ${name}`, 'capability'))
  const known = abilities.length > 0 ? abilities : [...tools, ...provided]
  const skills = [...new Map(known.map((ability) => [ability.id, skill(ability)])).values()].slice(0, SKILLS)
  return skills.length > 0 ? skills : [{ ...named('chat', descriptionOf(agent), 'chat'), name: agent.name }]
}

export function descriptionOf({ name, description }: AgentPort): string {
  return description || `The agent ${name}`
}

function named(name: string, description: string, tag: string): Ability {
  return { id: name, name, description, tags: [tag] }
}

function skill({ id, name, description, tags, examples = [] }: Ability): AgentSkill {
  const shown = tags.length > 0 ? tags : [id]
  return { id, name, description: description || name, tags: shown, ...(examples.length > 0 && { examples }) }
}
