import { defineAgent } from '../../core/agent-kit/define-agent.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { Draft } from '../../protocol/events.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { abilitiesOf } from '../abilities.ts'
import { COMMANDS } from './commands.ts'
import { say } from './say.ts'
import { answerAudio } from './speak.ts'
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

function answer(turn: Turn): AsyncGenerator<Draft, void> {
  // Messages of tools may follow.
  const last = turn.messages.findLast(({ role }) => role === 'user')
  // If a message has several inputs, the last one is the command.
  const texts = last?.content_items?.flatMap((item) => (item.type === 'text' ? [item.text] : []))
  const [, name, rest = ''] = /^\/(\w+)\s*([^]*)$/.exec(texts?.at(-1) ?? last?.content ?? '') ?? []
  if (name === undefined) return reply(last, turn)
  const command = COMMANDS.get(name)
  return command ? command.run(rest.trim(), turn) : say(`There is no command /${name}. Try /help.`, turn)
}

function reply(last: Message | undefined, turn: Turn): AsyncGenerator<Draft, void> {
  const items = last?.content_items ?? []
  const heard = items.find((item) => item.type === 'audio')
  if (heard && !items.some((item) => item.type === 'text')) return answerAudio(heard, turn)
  return say(`You said: ${last?.content ?? textOf(items)}`, turn)
}
