import type { Slot } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Listening } from '../../wire/audio/input-buffer.ts'
import type { Settings, TurnDetection } from './model.ts'

/** OpenAI's defaults. */
const DETECTION = {
  type: 'server_vad',
  threshold: 0.5,
  prefix_padding_ms: 300,
  silence_duration_ms: 500,
  idle_timeout_ms: null,
  create_response: true,
  interrupt_response: true,
} as const satisfies TurnDetection

export const DEFAULTS: Settings = {
  speaks: true,
  instructions: '',
  voice: 'alloy',
  speed: 1,
  inputFormat: 'pcm16',
  outputFormat: 'pcm16',
  turnDetection: DETECTION,
  transcription: null,
  noiseReduction: null,
  tools: [],
  toolChoice: 'auto',
  maxOutputTokens: 'inf',
  other: {},
}

export function withChanges(settings: Settings, changes: Partial<Settings>): Settings {
  return { ...settings, ...changes, other: { ...settings.other, ...changes.other } }
}

/** Missing fields get OpenAI's defaults, not their values from before. */
export function completeDetection(given: TurnDetection): TurnDetection {
  if (given.type === 'server_vad') return { ...DETECTION, ...given }
  return { eagerness: 'auto', create_response: true, interrupt_response: true, ...given }
}

/** How to listen for pauses; `undefined` if the client itself ends turns. `semantic_vad` is judged by loudness too. */
export function listening({ turnDetection: given }: Settings): Listening | undefined {
  if (given === null) return undefined
  return {
    threshold: given.threshold ?? DETECTION.threshold,
    prefixMs: given.prefix_padding_ms ?? DETECTION.prefix_padding_ms,
    silenceMs: given.silence_duration_ms ?? DETECTION.silence_duration_ms,
  }
}

/** The settings as the agent gets them. Agents always use pcm16; audio of the client is converted. */
export function configOf(settings: Settings, extra: Slot = {}): SessionConfig {
  const { speaks, instructions, tools, voice, speed, toolChoice, maxOutputTokens, other, sign } = settings
  const heard = listening(settings)
  return {
    modalities: speaks ? ['audio', 'text'] : ['text'],
    instructions,
    tools: [...tools],
    // UAMP allows speeds from 0.5, OpenAI from 0.25.
    voice: { ...(typeof voice === 'string' && { voice_id: voice }), speed: Math.max(0.5, speed) },
    input_audio_format: 'pcm16',
    output_audio_format: 'pcm16',
    turn_detection: heard
      ? {
          type: 'server_vad',
          threshold: heard.threshold,
          silence_duration_ms: heard.silenceMs,
          prefix_padding_ms: heard.prefixMs,
        }
      : { type: 'none' },
    extensions: {
      openai: {
        ...extra,
        tool_choice: toolChoice,
        ...(maxOutputTokens !== 'inf' && { max_output_tokens: maxOutputTokens }),
        ...other,
      },
      ...(sign !== undefined && { uamp: { sign } }),
    },
  }
}
