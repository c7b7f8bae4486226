import { defineAgent } from '../../core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import { abilitiesOf } from '../abilities.ts'
import { answer, COMMANDS } from './commands.ts'
import { tools } from './tools.ts'

/** An agent that shows every event without a key, deterministic and free. It echoes text; a slash command shows one thing. */
export function demo(): AgentPort {
  return defineAgent('demo', answer, {
    description: 'Shows what agents can do here, without a model. Try "/count 10 100" or "/help".',
    abilities: [
      {
        id: 'demo',
        name: 'Demonstration',
        description: 'Echoes what it is told, and shows streaming, thoughts, media, tools, questions and failures by slash commands.',
        tags: ['demo', 'echo'],
        examples: ['Hello', '/count 10 100', '/help'],
      },
      ...abilitiesOf(tools, []),
    ],
    capabilities: {
      provider: 'uamp',
      modalities: ['text', 'image', 'audio', 'video', 'file'],
      supports_thinking: true,
      tools: { supports_tools: true, supports_parallel_tools: true, built_in_tools: tools.map(({ name }) => name) },
      extensions: { uamp: { commands: [...COMMANDS].map(([name, { meaning }]) => ({ name, description: meaning })) } },
    },
    tools,
  })
}
