/** OpenAI Realtime as it was in beta (`OpenAI-Beta: realtime=v1`), and as UAMP transports names it. */
import * as z from 'zod/mini'
import { Slot } from '../../protocol/json.ts'
import { present } from '../../wire/fields.ts'
import { itemWords } from './items.ts'
import type { Dialect, Settings } from './model.ts'
import { MaxTokens, Modalities, reader, readSame, responseFields, sameSettings, TurnDetection, Voice } from './schema.ts'
import { showResponse, showTools } from './show.ts'

const items = itemWords({ text: 'text', audio: 'audio' })

const Format = z.enum(['pcm16', 'g711_ulaw', 'g711_alaw'])

const common = {
  ...sameSettings,
  modalities: z.nullish(Modalities),
  voice: z.nullish(Voice),
  output_audio_format: z.nullish(Format),
  temperature: z.optional(z.unknown()),
}

const Session = z.object({
  ...common,
  speed: z.nullish(z.number().check(z.minimum(0.25), z.maximum(1.5))),
  input_audio_format: z.nullish(Format),
  input_audio_transcription: z.optional(z.nullable(Slot)),
  input_audio_noise_reduction: z.optional(z.nullable(Slot)),
  turn_detection: z.optional(TurnDetection),
  max_response_output_tokens: z.nullish(MaxTokens),
  tracing: z.optional(z.unknown()),
})

const Response = z.object({
  ...common,
  ...responseFields(items.schema),
  // Both names were in use.
  max_output_tokens: z.nullish(MaxTokens),
  max_response_output_tokens: z.nullish(MaxTokens),
})

type Given = z.infer<typeof Session> & Partial<Pick<z.infer<typeof Response>, 'max_output_tokens'>>

function readSettings(given: Given): Partial<Settings> {
  return {
    ...readSame(given),
    ...present({
      speaks: given.modalities?.includes('audio'),
      maxOutputTokens: given.max_output_tokens ?? given.max_response_output_tokens ?? undefined,
      inputFormat: given.input_audio_format ?? undefined,
      outputFormat: given.output_audio_format ?? undefined,
      voice: given.voice ?? undefined,
      speed: given.speed ?? undefined,
      turnDetection: given.turn_detection,
      transcription: given.input_audio_transcription,
      noiseReduction: given.input_audio_noise_reduction,
    }),
    other: present({ prompt: given.prompt, temperature: given.temperature, tracing: given.tracing }),
  }
}

const modalities = (speaks: boolean): string[] => (speaks ? ['audio', 'text'] : ['text'])

export const beta: Dialect = {
  read: reader({ item: items.schema, session: Session, response: Response, settings: readSettings }),
  session: ({ speaks, instructions, tools, toolChoice, maxOutputTokens, other, sign, ...settings }) => ({
    modalities: modalities(speaks),
    instructions,
    voice: settings.voice,
    speed: settings.speed,
    input_audio_format: settings.inputFormat,
    output_audio_format: settings.outputFormat,
    input_audio_transcription: settings.transcription,
    input_audio_noise_reduction: settings.noiseReduction,
    turn_detection: settings.turnDetection,
    tools: showTools(tools),
    tool_choice: toolChoice,
    temperature: 0.8,
    max_response_output_tokens: maxOutputTokens,
    tracing: null,
    ...other,
    ...(sign !== undefined && { uamp: { sign } }),
  }),
  response: (state) => ({
    ...showResponse(state),
    output: state.output.map((item) => items.show(item)),
    modalities: modalities(state.settings.speaks),
    voice: state.settings.voice,
    output_audio_format: state.settings.outputFormat,
    temperature: state.settings.other['temperature'] ?? 0.8,
  }),
  item: items.show,
  names: {
    added: 'conversation.item.created',
    text: 'response.text',
    audio: 'response.audio',
    transcript: 'response.audio_transcript',
  },
}
