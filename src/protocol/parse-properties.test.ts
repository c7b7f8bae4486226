import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UampError } from './errors.ts'
import { ClientEvent } from './events.ts'
import { parseClientEvent, parseClientText, type ParsedEvent } from './parse.ts'

const newId = () => 'new'
const TYPES = ClientEvent.def.options.map((schema) => schema.shape.type.def.values[0] as string)
const FIELDS = [...new Set(ClientEvent.def.options.flatMap((schema) => Object.keys(schema.shape)))]
const ODD_KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'conversation_id', '']

const json = fc.jsonValue({ maxDepth: 5 })
/** Values that get through the first checks more often than chance would have it. */
const plausible = fc.oneof(
  json,
  fc.string(),
  fc.constantFrom('user', 'pcm16', 'text', 'server_vad', ''),
  fc.boolean(),
  fc.integer(),
  fc.constant(null),
  fc.record({ url: fc.string() }),
  fc.array(fc.record({ role: fc.constantFrom('user', 'tool'), content: fc.option(fc.string()) }), { maxLength: 3 }),
  fc.dictionary(fc.constantFrom(...FIELDS, ...ODD_KEYS), json, { maxKeys: 4 }),
)
const event = fc
  .tuple(
    fc.constantFrom(...TYPES, 'unknown', 'system.stop'),
    fc.array(fc.tuple(fc.constantFrom(...FIELDS, ...ODD_KEYS), plausible), { maxLength: 8 }),
  )
  // `fromEntries` makes own keys, `__proto__` too, as `JSON.parse` does.
  .map(([type, fields]) => Object.fromEntries([...fields, ['type', type]]) as unknown)

/** The parse, or undefined where it was refused as it should be. */
function attempt(run: () => ParsedEvent): ParsedEvent | undefined {
  try {
    return run()
  } catch (thrown) {
    expectRefusal(thrown)
    return undefined
  }
}

function expectRefusal(thrown: unknown): void {
  expect(thrown).toBeInstanceOf(UampError)
  const { code, message, details } = thrown as UampError
  expect(code).toBe('invalid_request')
  expect(message).not.toMatch(/undefined|Invalid input|\[object/)
  expect(details?.['issues']).not.toHaveLength(0)
}

describe('whatever comes', () => {
  test('any JSON is parsed or refused', () => {
    fc.assert(fc.property(json, (value) => void attempt(() => parseClientEvent(value, newId))))
  })

  test('any text is parsed or refused', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', 'null', '1e999', '"type"', '"ping"', '\u0000', ' ')
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.array(piece).map((pieces) => pieces.join('')),
    )
    fc.assert(fc.property(text, (value) => void attempt(() => parseClientText(value, newId))))
  })

  test('anything that looks like an event is parsed or refused, in text as in memory', () => {
    fc.assert(
      fc.property(event, (value) => {
        const parsed = attempt(() => parseClientEvent(value, newId))
        expect(attempt(() => parseClientText(JSON.stringify(value), newId))).toEqual(parsed)
      }),
      { numRuns: 2000 },
    )
  })

  test('the value itself is left as it was', () => {
    fc.assert(
      fc.property(event, (value) => {
        const before = JSON.stringify(value)
        attempt(() => parseClientEvent(value, newId))
        expect(JSON.stringify(value)).toBe(before)
      }),
    )
  })

  test('what was parsed parses to itself', () => {
    let events = 0
    fc.assert(
      fc.property(event, (value) => {
        const parsed = attempt(() => parseClientEvent(value, newId))
        if (parsed?.kind !== 'event') return
        events++
        expect(parseClientEvent(parsed.event, () => 'another')).toEqual(parsed)
        expect(ClientEvent.parse(parsed.event)).toEqual(parsed.event)
      }),
      { numRuns: 2000 },
    )
    expect(events).toBeGreaterThan(200)
  })

  test('no prototype is touched', () => {
    const names = () => [Object.prototype, Array.prototype, Function.prototype].map((prototype) => Object.getOwnPropertyNames(prototype))
    const before = names()
    fc.assert(
      fc.property(event, (value) => {
        const parsed = attempt(() => parseClientEvent(value, newId))
        expect(Object.getPrototypeOf(parsed?.kind === 'event' ? parsed.event : {})).toBe(Object.prototype)
        expect(names()).toEqual(before)
      }),
    )
  })

  test('every unknown field can be added without a difference', () => {
    const extra = fc.dictionary(
      fc.string().filter((name) => !FIELDS.includes(name) && name !== 'conversation_id'),
      json,
    )
    fc.assert(
      fc.property(event, extra, (value, more) => {
        const parsed = attempt(() => parseClientEvent(value, newId))
        const fields = Object.entries(value as object)
        expect(attempt(() => parseClientEvent(Object.fromEntries([...Object.entries(more), ...fields]), newId))).toEqual(parsed)
      }),
    )
  })
})
