import * as z from 'zod/mini'
import { Slot } from './json.ts'

export const VoiceConfig = z.object({
  provider: z.optional(z.string()),
  voice_id: z.optional(z.string()),
  name: z.optional(z.string()),
  speed: z.optional(z.number().check(z.minimum(0.5), z.maximum(2))),
  pitch: z.optional(z.number()),
  language: z.optional(z.string()),
  extensions: z.optional(Slot),
})

export const TurnDetection = z.object({
  type: z.enum(['server_vad', 'client_vad', 'push_to_talk', 'none']),
  threshold: z.optional(z.number()),
  silence_duration_ms: z.optional(z.number()),
  prefix_padding_ms: z.optional(z.number()),
})
