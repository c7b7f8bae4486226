import * as z from 'zod/mini'
import { Capabilities } from './capabilities.ts'
import { ContentItem, ToolCall, ToolResult } from './content.ts'
import { ClientEvent, ServerEvent } from './events.ts'
import { PatchOperation } from './extension-events.ts'
import { Message } from './message.ts'
import { Payment, PaymentRequirements, PaymentScheme } from './payment.ts'
import { Delta, ErrorBody, SessionInfo } from './server-events.ts'
import { ResponseFormat, SessionConfig } from './session-config.ts'
import { SystemEvent } from './system-events.ts'
import { ToolDefinition } from './tools.ts'
import { Usage } from './usage.ts'
import { UAMP_VERSION } from './version.ts'
import { TurnDetection, VoiceConfig } from './voice.ts'

const SHARED = {
  Capabilities,
  ContentItem,
  Delta,
  ErrorBody,
  Message,
  PatchOperation,
  Payment,
  PaymentRequirements,
  PaymentScheme,
  ResponseFormat,
  SessionConfig,
  SessionInfo,
  ToolCall,
  ToolDefinition,
  ToolResult,
  TurnDetection,
  Usage,
  VoiceConfig,
}

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
const ref = (name: string) => `#/$defs/${name}`

/**
 * Every event as JSON Schema 2020-12, in one document. `$defs` has each event under its `type`, and the groups
 * `ClientEvent`, `ServerEvent`, `SystemEvent` and `ExtensionEvent` (`x.*`, which also belong to whoever sends them).
 * It describes what a well-behaved sender writes; the parser forgives more, such as a missing `event_id`.
 */
export function eventSchemas(): Record<string, unknown> {
  const groups = { ClientEvent, ServerEvent, SystemEvent }
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(SHARED)) registry.add(schema, { id })
  const members = new Map<string, readonly string[]>()
  for (const [name, group] of Object.entries(groups)) {
    members.set(
      name,
      group.def.options.map((schema) => {
        const id = schema.shape.type.def.values[0] as string
        if (!registry.has(schema)) registry.add(schema, { id })
        return id
      }),
    )
  }
  const types = [...new Set([...members.values()].flat())]
  members.set(
    'ExtensionEvent',
    types.filter((type) => type.startsWith('x.')),
  )

  const { schemas } = z.toJSONSchema(registry, {
    uri: ref,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // A slot. Unknown fields are ignored, not forbidden (UAMP events §14.3 rule 3).
      if (zodSchema._zod.def.type === 'custom') jsonSchema.type = 'object'
      delete jsonSchema.additionalProperties
    },
  })
  const $defs: Record<string, unknown> = {}
  for (const [name, { $schema: _dialect, $id: _id, ...schema }] of Object.entries(schemas)) $defs[name] = schema
  for (const [name, types] of members) $defs[name] = { oneOf: types.map((type) => ({ $ref: ref(type) })) }
  return { $schema: DIALECT, title: `UAMP ${UAMP_VERSION} events`, anyOf: [...members.keys()].map((name) => ({ $ref: ref(name) })), $defs }
}
