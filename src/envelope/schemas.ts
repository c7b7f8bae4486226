import * as z from 'zod/mini'
import { Delta, Envelope, Manifest } from './schema.ts'

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** The envelope, the delta and the manifest as JSON Schema 2020-12 in one document, for those who write another implementation. */
export function envelopeSchemas(): Record<string, unknown> {
  const shown = (schema: z.ZodMiniType): object => {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
      override: ({ zodSchema, jsonSchema }) => {
        // A slot.
        if (zodSchema._zod.def.type === 'custom') jsonSchema.type = 'object'
      },
    })
    return rest
  }
  return { $schema: DIALECT, $defs: { Envelope: shown(Envelope), Delta: shown(Delta), Manifest: shown(Manifest) } }
}
