import { defineAgent } from '../../core/define-agent.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Draft } from '../../protocol/events.ts'
import { COMMANDS } from './commands.ts'
import { say } from './say.ts'
import { tools } from './tools.ts'

/** An agent that shows every event without a key: deterministic and free. Text is echoed; a slash command does one thing. */
export function demo(): AgentPort {
  return defineAgent('demo', answer, {
    description: 'Shows what agents can do here, without a model. Try "/count 10 100" or "/help".',
    capabilities: {
      provider: 'uamp',
      modalities: ['text', 'image', 'audio', 'video', 'file'],
      supports_thinking: true,
      tools: { supports_tools: true, supports_parallel_tools: true, built_in_tools: tools.map(({ name }) => name) },
    },
  })
}

function answer(turn: Turn): AsyncGenerator<Draft, void> {
  const last = turn.messages.at(-1)
  // Of several inputs in one message the last one is the command.
  const texts = last?.content_items?.flatMap((item) => (item.type === 'text' ? [item.text] : []))
  const [, name, rest = ''] = /^\/(\w+)\s*([^]*)$/.exec(texts?.at(-1) ?? last?.content ?? '') ?? []
  if (name === undefined) return say(`You said: ${last?.content ?? texts?.join('') ?? ''}`)
  const command = COMMANDS.get(name)
  return command ? command(rest.trim(), turn) : say(`There is no command /${name}. Try /help.`)
}
