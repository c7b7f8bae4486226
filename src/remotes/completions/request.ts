import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { modelFor, settingsFor, usableChoice } from '../../wire/openai/settings.ts'
import { toChatMessages } from './messages.ts'

/** Where no voice is asked for. */
const VOICE = 'alloy'

export interface Asked {
  readonly messages: readonly Message[]
  readonly config: SessionConfig
}

/** The body of one request. */
export function toRequest({ messages, config }: Asked, { name, model }: { readonly name: string; readonly model: string }): object {
  const { tools = [], response_format, modalities, voice, instructions } = config
  const { tool_choice, ...settings } = settingsFor(config, name)
  const choice = usableChoice(tool_choice, tools)
  return {
    model: modelFor(config, name) ?? model,
    messages: toChatMessages(messages, instructions),
    stream: true,
    stream_options: { include_usage: true },
    ...settings,
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && { tool_choice: typeof choice === 'string' ? choice : { type: 'function', function: choice } }),
    ...(response_format && response_format.type !== 'text' && { response_format }),
    ...(modalities.includes('audio') && { modalities: ['text', 'audio'], audio: { voice: voice?.name ?? VOICE, format: 'pcm16' } }),
  }
}
