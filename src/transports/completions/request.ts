import type { Slot } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { invalid } from '../../wire/parse.ts'
import type { Keeping, Metadata } from './kept.ts'
import { toMessages } from './messages.ts'
import type { CompletionRequest } from './schema.ts'

/** A request in the terms of sessions. */
export interface Asked {
  readonly messages: readonly Message[]
  readonly config: SessionConfig
  readonly shape: Shape
  readonly stream: boolean
  readonly choices: number
  readonly store: boolean
  readonly metadata: Metadata | undefined
  /** What is kept of it with `store`. */
  readonly keep: Pick<Keeping, 'shape' | 'choices' | 'metadata'>
}

/** The form of the answer that the client wants. */
export interface Shape {
  /** The functions that the client runs. The agent itself runs all others. */
  readonly functions: ReadonlySet<string>
  /** The client speaks the older dialect, with a single `function_call` and no ids. */
  readonly legacy: boolean
  /** The audio format, if the client wants to hear the answer. */
  readonly audio: string | undefined
  /** Streams only: a last chunk holds the usage. */
  readonly usage: boolean
}

type Tool = NonNullable<CompletionRequest['tools']>[number]

/** A hosted tool may have any type but this one. */
function isFunction(tool: Tool): tool is ToolDefinition {
  return tool.type === 'function'
}

/** `slots`: extensions of the session beside the settings. */
export function toAsked(body: CompletionRequest, slots: Slot = {}): Asked {
  const { messages, stream, stream_options, n, tools, functions, response_format, modalities, audio, ...rest } = body
  const legacy = tools == null && functions != null
  const hosted = (tools ?? []).filter((tool) => !isFunction(tool))
  const offered = tools?.filter(isFunction) ?? functions?.map((definition) => ({ type: 'function' as const, function: definition })) ?? []
  const usable = body.tool_choice === 'none' || rest['function_call'] === 'none' ? [] : offered
  const names = new Set(usable.map((tool) => tool.function.name))
  const forced = typeof body.tool_choice === 'object' ? body.tool_choice?.function?.name : undefined
  if (forced !== undefined && !names.has(forced))
    throw invalid(`"tool_choice" names "${forced}", which is not among "tools"`, 'tool_choice')
  const speaks = audio != null && (modalities?.includes('audio') ?? false)
  if (modalities?.includes('audio') && audio == null) {
    throw invalid('"audio" must say the voice and the format', 'audio', 'missing_required_parameter')
  }
  const shape: Shape = {
    functions: names,
    legacy,
    audio: speaks ? audio.format : undefined,
    usage: stream_options?.include_usage ?? false,
  }
  const metadata = body.metadata ?? undefined
  return {
    messages: toMessages(messages),
    config: {
      modalities: modalities == null ? ['text'] : [...modalities],
      ...(usable.length > 0 && { tools: usable }),
      ...(response_format != null && { response_format }),
      ...(speaks && {
        voice: { name: typeof audio.voice === 'string' ? audio.voice : audio.voice.id },
        output_audio_format: audio.format === 'wav' ? 'pcm16' : audio.format,
      }),
      extensions: { openai: hosted.length > 0 ? { ...rest, tools: hosted } : rest, ...slots },
    },
    shape,
    stream: stream ?? false,
    choices: n ?? 1,
    store: body.store ?? false,
    metadata,
    keep: { shape, choices: n ?? 1, metadata: metadata ?? {} },
  }
}
