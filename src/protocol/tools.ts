import * as z from 'zod/mini'
import { isDeeperThan, list, Slot, utf8Length } from './json.ts'
import { limits } from './limits.ts'

/** A JSON Schema, unchanged. Its depth is checked first, because `JSON.stringify` recurses. */
const ParameterSchema = Slot.check(
  z.refine((schema) => !isDeeperThan(schema, limits.schemaDepth), {
    error: `must nest at most ${limits.schemaDepth} levels`,
    abort: true,
  }),
  z.refine((schema) => utf8Length(JSON.stringify(schema)) <= limits.schemaBytes, `must be at most ${limits.schemaBytes} bytes of JSON`),
)

/** A function that a client offers or an agent has: UAMP events §8.6. */
export const ToolDefinition = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string().check(z.regex(limits.toolName, 'must be 1 to 64 of the characters a-z, A-Z, 0-9, "_" and "-"')),
    description: z.optional(z.string()),
    parameters: z.optional(ParameterSchema),
    strict: z.optional(z.boolean()),
  }),
})
export type ToolDefinition = z.infer<typeof ToolDefinition>

export const Tools = list(ToolDefinition, limits.tools)
