/** OpenAI Realtime as it was in beta (`OpenAI-Beta: realtime=v1`), and as UAMP transports names it. */
import * as z from 'zod/mini'
import { list, Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { parseValue } from '../../wire/parse.ts'
import { itemWords } from './items.ts'
import type { Dialect, GivenItem, Settings } from './model.ts'
import { defined, MaxTokens, Modalities, reader, readSame, responseFields, sameSettings, TurnDetection, Voice } from './schema.ts'
import { showResponse, showTools } from './show.ts'

const items = itemWords({
  user: { text: 'input_text', audio: 'input_audio', image: 'input_image' },
  assistant: { text: 'text', audio: 'audio' },
  system: { text: 'input_text' },
})

const Format = z.enum(['pcm16', 'g711_ulaw', 'g711_alaw'])

const common = {
  ...sameSettings,
  modalities: z.nullish(Modalities),
  voice: z.nullish(Voice),
  output_audio_format: z.nullish(Format),
  temperature: z.optional(z.unknown()),
}

const SessionUpdate = z.object({
  session: z.object({
    ...common,
    speed: z.nullish(z.number().check(z.minimum(0.25), z.maximum(1.5))),
    input_audio_format: z.nullish(Format),
    input_audio_transcription: z.optional(z.nullable(Slot)),
    input_audio_noise_reduction: z.optional(z.nullable(Slot)),
    turn_detection: z.optional(TurnDetection),
    max_response_output_tokens: z.nullish(MaxTokens),
    tracing: z.optional(z.unknown()),
  }),
})

const ItemCreate = z.object({ item: items.schema, previous_item_id: z.nullish(z.string()) })
const Reference = z.pipe(
  z.object({ type: z.literal('item_reference'), id: z.string() }),
  z.transform(({ id }): GivenItem | string => id),
)
const ResponseCreate = z.object({
  response: z.nullish(
    z.object({
      ...common,
      ...responseFields,
      // Both names were in use.
      max_output_tokens: z.nullish(MaxTokens),
      max_response_output_tokens: z.nullish(MaxTokens),
      input: z.nullish(list(z.union([Reference, items.schema]), limits.messages)),
    }),
  ),
})

type Session = z.infer<typeof SessionUpdate>['session']

function readSettings(given: Session): Partial<Settings> {
  return {
    ...readSame(given),
    ...defined({
      speaks: given.modalities?.includes('audio'),
      maxOutputTokens: given.max_response_output_tokens ?? undefined,
      inputFormat: given.input_audio_format ?? undefined,
      outputFormat: given.output_audio_format ?? undefined,
      voice: given.voice ?? undefined,
      speed: given.speed ?? undefined,
      turnDetection: given.turn_detection,
      transcription: given.input_audio_transcription,
      noiseReduction: given.input_audio_noise_reduction,
    }),
    other: defined({ prompt: given.prompt, temperature: given.temperature, tracing: given.tracing }),
  }
}

const modalities = (speaks: boolean): string[] => (speaks ? ['audio', 'text'] : ['text'])

export const beta: Dialect = {
  read: reader({
    'session.update': (event) => ({ type: 'session.update', changes: readSettings(parseValue(SessionUpdate, event).session) }),
    'conversation.item.create': (event) => {
      const { item, previous_item_id: previous } = parseValue(ItemCreate, event)
      return { type: 'conversation.item.create', item, previous: previous ?? undefined }
    },
    'response.create': (event) => {
      const { response } = parseValue(ResponseCreate, event)
      const maxTokens = response?.max_output_tokens ?? response?.max_response_output_tokens
      return {
        type: 'response.create',
        request: {
          changes: response ? readSettings({ ...response, max_response_output_tokens: maxTokens }) : {},
          metadata: response?.metadata ?? null,
          conversation: response?.conversation === 'none' ? 'none' : 'auto',
          input: response?.input ?? undefined,
        },
      }
    },
  }),
  session: ({ speaks, instructions, tools, toolChoice, maxOutputTokens, other, ...settings }) => ({
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
  added: (item, previous) => [{ type: 'conversation.item.created', previous_item_id: previous, item }],
  // The beta had no event for it.
  finished: () => [],
  names: { text: 'response.text', audio: 'response.audio', transcript: 'response.audio_transcript' },
}
