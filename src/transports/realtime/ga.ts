/** OpenAI Realtime, generally available. */
import * as z from 'zod/mini'
import { Slot } from '../../protocol/json.ts'
import { present } from '../../wire/fields.ts'
import type { AudioFormat } from './audio/formats.ts'
import { itemWords } from './items.ts'
import type { Dialect, Settings } from './model.ts'
import { MaxTokens, Modalities, reader, readSame, responseFields, sameSettings, TurnDetection, Voice } from './schema.ts'
import { showResponse, showTools } from './show.ts'

const items = itemWords({ text: 'output_text', audio: 'output_audio' })

const FORMATS = { 'audio/pcm': 'pcm16', 'audio/pcmu': 'g711_ulaw', 'audio/pcma': 'g711_alaw' } as const
const SHOWN_FORMATS = {
  pcm16: { type: 'audio/pcm', rate: 24_000 },
  g711_ulaw: { type: 'audio/pcmu' },
  g711_alaw: { type: 'audio/pcma' },
} satisfies Record<AudioFormat, Slot>

const Format = z.object({
  type: z.enum(['audio/pcm', 'audio/pcmu', 'audio/pcma']),
  rate: z.optional(z.nullable(z.literal(24_000, 'must be 24000'))),
})
const Output = z.object({
  format: z.nullish(Format),
  voice: z.nullish(Voice),
  speed: z.nullish(z.number().check(z.minimum(0.25), z.maximum(1.5))),
})

const common = {
  ...sameSettings,
  output_modalities: z.nullish(Modalities),
  max_output_tokens: z.nullish(MaxTokens),
  reasoning: z.optional(z.unknown()),
  parallel_tool_calls: z.optional(z.unknown()),
}

const Input = z.object({
  format: z.nullish(Format),
  transcription: z.optional(z.nullable(Slot)),
  noise_reduction: z.optional(z.nullable(Slot)),
  turn_detection: z.optional(TurnDetection),
})

const Session = z.object({
  ...common,
  type: z.optional(z.literal('realtime')),
  tracing: z.optional(z.unknown()),
  truncation: z.optional(z.unknown()),
  include: z.optional(z.unknown()),
  audio: z.nullish(z.object({ input: z.nullish(Input), output: z.nullish(Output) })),
})

const Response = z.object({
  ...common,
  ...responseFields(items.schema),
  audio: z.nullish(z.object({ output: z.nullish(Output) })),
})

function readSettings(given: Omit<z.infer<typeof Session>, 'type'>): Partial<Settings> {
  const { audio, output_modalities: modalities, max_output_tokens: maxOutputTokens } = given
  const { prompt, reasoning, parallel_tool_calls, tracing, truncation, include } = given
  const { input, output } = audio ?? {}
  return {
    ...readSame(given),
    ...present({
      speaks: modalities?.includes('audio'),
      maxOutputTokens: maxOutputTokens ?? undefined,
      inputFormat: input?.format ? FORMATS[input.format.type] : undefined,
      outputFormat: output?.format ? FORMATS[output.format.type] : undefined,
      voice: output?.voice ?? undefined,
      speed: output?.speed ?? undefined,
      turnDetection: input?.turn_detection,
      transcription: input?.transcription,
      noiseReduction: input?.noise_reduction,
    }),
    other: present({ prompt, reasoning, parallel_tool_calls, tracing, truncation, include }),
  }
}

export const ga: Dialect = {
  read: reader({ item: items.schema, session: Session, response: Response, settings: readSettings }),
  session: ({ speaks, instructions, tools, toolChoice, maxOutputTokens, other, sign, ...settings }) => ({
    type: 'realtime',
    output_modalities: [speaks ? 'audio' : 'text'],
    instructions,
    tools: showTools(tools),
    tool_choice: toolChoice,
    max_output_tokens: maxOutputTokens,
    tracing: null,
    truncation: 'auto',
    prompt: null,
    include: null,
    ...other,
    ...(sign !== undefined && { uamp: { sign } }),
    audio: {
      input: {
        format: SHOWN_FORMATS[settings.inputFormat],
        transcription: settings.transcription,
        noise_reduction: settings.noiseReduction,
        turn_detection: settings.turnDetection,
      },
      output: { format: SHOWN_FORMATS[settings.outputFormat], voice: settings.voice, speed: settings.speed },
    },
  }),
  response: (state) => ({
    ...showResponse(state),
    output: state.output.map((item) => items.show(item)),
    output_modalities: [state.settings.speaks ? 'audio' : 'text'],
    audio: { output: { format: SHOWN_FORMATS[state.settings.outputFormat], voice: state.settings.voice } },
  }),
  item: items.show,
  names: {
    added: 'conversation.item.added',
    finished: 'conversation.item.done',
    text: 'response.output_text',
    audio: 'response.output_audio',
    transcript: 'response.output_audio_transcript',
  },
}
