import { expect } from 'vitest'
import type { RequirementId } from '../../spec/requirements.ts'
import { eventSchemas } from '../../src/protocol/schemas.ts'
import { verifies } from './verifies.ts'

export interface EventCase {
  readonly verifies?: RequirementId | readonly RequirementId[]
  /** An event with every field that its type has, beyond those of the base. */
  readonly event: { readonly type: string } & Readonly<Record<string, unknown>>
  /** The fields it cannot do without, beyond those of the base. */
  readonly required?: readonly string[]
  /** Required of a sender, but not missed by our parser. */
  readonly forgiven?: readonly string[]
  /** Fields that take any value. */
  readonly anything?: readonly string[]
}

const BASE = { event_id: '550e8400-e29b-41d4-a716-446655440000', timestamp: 1704067200000, session_id: 'sess_1' }

/** A table of events, each read by `read`, which throws an error that names the field that is wrong. */
export function eventCases(cases: readonly EventCase[], read: (event: unknown) => unknown): void {
  const schemas = eventSchemas()['$defs'] as Record<string, { required: string[]; properties: Record<string, unknown> }>
  for (const { verifies: ids = [], event, required = [], forgiven = [], anything = [] } of cases) {
    verifies(ids, `${event.type} is taken as it is, and refused where a field is missing or of the wrong type`, () => {
      const full = { ...BASE, ...event }
      expect(read(full)).toEqual(full)

      const schema = schemas[event.type]
      expect(schema?.required.toSorted()).toEqual(['event_id', 'type', ...required, ...forgiven].toSorted())
      expect(Object.keys(schema?.properties ?? {})).toEqual(expect.arrayContaining(Object.keys(full)))

      const least = { event_id: 'e', type: event.type, ...pick(event, required) }
      expect(read(least)).toMatchObject(least)
      for (const name of required) expect(() => read(without(full, name)), `without ${name}`).toThrow(name)
      for (const [name, value] of Object.entries(full)) {
        if (name === 'type' || anything.includes(name)) continue
        expect(() => read({ ...full, [name]: ofAnotherKind(value) }), `wrong ${name}`).toThrow(name)
      }
    })
  }
}

function pick(event: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, event[name]]))
}

function without(event: Readonly<Record<string, unknown>>, name: string): Record<string, unknown> {
  const { [name]: _, ...rest } = event
  return rest
}

function ofAnotherKind(value: unknown): unknown {
  return typeof value === 'number' ? 'text' : 7
}
