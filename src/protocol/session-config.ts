import * as z from 'zod/mini'
import { AudioFormat } from './content.ts'
import { list, Slot, utf8Length } from './json.ts'
import { limits } from './limits.ts'
import { Tools } from './tools.ts'
import { TurnDetection, VoiceConfig } from './voice.ts'

/** UAMP events §8.3. */
export const ResponseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string(),
      description: z.optional(z.string()),
      schema: z.optional(Slot),
      strict: z.optional(z.boolean()),
    }),
  }),
])
export type ResponseFormat = z.infer<typeof ResponseFormat>

/** §8.1: "text", "audio", "image", "video", "file", or custom. */
export const Modalities = list(z.string(), limits.list)

export const Instructions = z
  .string()
  .check(
    z.refine(
      (text) => text.length * 3 <= limits.instructionsBytes || utf8Length(text) <= limits.instructionsBytes,
      `must be at most ${limits.instructionsBytes} bytes of UTF-8`,
    ),
  )

const settings = {
  instructions: z.optional(Instructions),
  tools: z.optional(Tools),
  voice: z.optional(VoiceConfig),
  input_audio_format: z.optional(AudioFormat),
  output_audio_format: z.optional(AudioFormat),
  turn_detection: z.optional(TurnDetection),
  response_format: z.optional(ResponseFormat),
  extensions: z.optional(Slot),
}

/** UAMP events §8.1, which requires `modalities`. Real clients leave it out, so it has a default. */
export const SessionConfig = z.object({
  modalities: z._default(Modalities, () => ['text']),
  ...settings,
})
export type SessionConfig = z.infer<typeof SessionConfig>

/** A change of the configuration. Not `z.partial(SessionConfig)`, which would add the default of `modalities` to every change. */
export const SessionConfigPatch = z.object({ modalities: z.optional(Modalities), ...settings })
export type SessionConfigPatch = z.infer<typeof SessionConfigPatch>
