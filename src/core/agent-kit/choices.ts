import * as z from 'zod/mini'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { uampIn } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

const Choice = z.object({ id: z.string(), name: z.optional(z.string()), description: z.optional(z.string()) })
type Choice = z.infer<typeof Choice>

const dollars = z.number()
const Price = z.object({ input: dollars, output: dollars, cacheRead: z.optional(dollars), cacheWrite: z.optional(dollars) })
const ModelChoice = z.extend(Choice, {
  context_window: z.optional(z.number()),
  max_output_tokens: z.optional(z.number()),
  price: z.optional(Price),
})
type ModelChoice = z.infer<typeof ModelChoice>

const Command = z.object({ name: z.string(), description: z.optional(z.string()), hint: z.optional(z.string()) })
type Command = z.infer<typeof Command>

/** What an agent lets its clients choose, from `capabilities.extensions.uamp`. The first model and the first mode are the defaults. */
export interface Choices {
  readonly models: readonly ModelChoice[]
  readonly modes: readonly Choice[]
  readonly commands: readonly Command[]
}

export function choicesOf(capabilities: Capabilities | undefined): Choices {
  const { models, modes, commands } = uampIn(capabilities?.extensions)
  return { models: listOf(ModelChoice, models), modes: listOf(Choice, modes), commands: listOf(Command, commands) }
}

/** What a client chose, from `config.extensions.uamp`. */
export function chosenIn({ extensions }: SessionConfig): { readonly model: string | undefined; readonly mode: string | undefined } {
  const { model, mode } = uampIn(extensions)
  return { model: typeof model === 'string' ? model : undefined, mode: typeof mode === 'string' ? mode : undefined }
}

function listOf<T extends z.ZodMiniType>(schema: T, value: unknown): readonly z.output<T>[] {
  const parsed = z.safeParse(z.array(schema), value, FIRST_EXPLAINED)
  return parsed.success ? parsed.data : []
}
