import * as z from 'zod/mini'
import { list, Slot, uampIn } from './json.ts'
import { limits } from './limits.ts'
import { Modalities } from './session-config.ts'

const strings = z.optional(list(z.string(), limits.list))
const flag = z.optional(z.boolean())
const count = z.optional(z.number())

/** One structure for models, clients and agents: UAMP events §9. The three `supports_*` flags default to false. */
export const Capabilities = z.object({
  id: z.string(),
  provider: z.string(),
  modalities: Modalities,
  supports_streaming: z._default(z.boolean(), false),
  supports_thinking: z._default(z.boolean(), false),
  supports_caching: z._default(z.boolean(), false),
  supports_rich_display: flag,
  context_window: count,
  max_output_tokens: count,
  image: z.optional(z.object({ formats: strings, max_size_bytes: count, detail_levels: strings, max_images_per_request: count })),
  audio: z.optional(
    z.object({
      input_formats: strings,
      output_formats: strings,
      sample_rates: z.optional(list(z.number(), limits.list)),
      supports_realtime: flag,
      voices: strings,
    }),
  ),
  file: z.optional(
    z.object({
      max_size_bytes: count,
      supported_mime_types: strings,
      supports_pdf: flag,
      supports_code: flag,
      supports_structured_data: flag,
    }),
  ),
  tools: z.optional(
    z.object({
      supports_tools: flag,
      supports_parallel_tools: flag,
      supports_streaming_tools: flag,
      max_tools_per_request: count,
      built_in_tools: strings,
    }),
  ),
  provides: strings,
  widgets: strings,
  endpoints: strings,
  extensions: z.optional(Slot),
})
export type Capabilities = z.infer<typeof Capabilities>

/** What a client says of itself. A flag that it leaves out says nothing: only `false` says that it cannot do something. */
export const ClientProfile = z.extend(Capabilities, { supports_streaming: flag, supports_thinking: flag, supports_caching: flag })
export type ClientProfile = z.infer<typeof ClientProfile>

/** The extension events (`x.*`) that a client announces. */
export function understoodEvents(client: ClientProfile | undefined): readonly string[] | 'all' {
  const { events } = uampIn(client?.extensions)
  return Array.isArray(events) ? events.filter((name) => typeof name === 'string') : events === true ? 'all' : []
}
