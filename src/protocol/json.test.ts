import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { excessIn, isDeeperThan, jsonIn, list, outlineOf, parseJson, uampIn, utf8Length } from './json.ts'
import { limits } from './limits.ts'
import * as z from 'zod/mini'

/** Depth as its definition says, for values that are known to be shallow. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

const isTextDeeperThan = (text: string, levels: number): boolean => excessIn(text, levels)?.bound === 'depth'

const emptied = (value: unknown): unknown => (Array.isArray(value) ? [] : typeof value === 'object' && value !== null ? {} : value)

describe('depth', () => {
  test('text and value agree with the definition, whatever the strings hold', () => {
    const brackets = fc.string({ unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', 'a', '\u2028', '😀') })
    const value = fc.anything({ values: [brackets, fc.integer(), fc.constant(null)], key: brackets, maxDepth: 8, withNullPrototype: false })
    fc.assert(
      fc.property(value, fc.nat({ max: 9 }), fc.boolean(), (given, levels, spaced) => {
        const text = JSON.stringify(given, null, spaced ? 2 : 0)
        fc.pre(text !== undefined)
        const parsed: unknown = JSON.parse(text)
        const deeper = depthOf(parsed) > levels
        return isTextDeeperThan(text, levels) === deeper && isDeeperThan(parsed, levels) === deeper
      }),
    )
  })

  test('an outline is the object without what is in its members', () => {
    const brackets = fc.string({ unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', ':', 'a', '😀') })
    const value = fc.anything({ values: [brackets, fc.integer(), fc.constant(null)], key: brackets, maxDepth: 5, withNullPrototype: false })
    fc.assert(
      fc.property(fc.dictionary(brackets, value), fc.boolean(), (given, spaced) => {
        const text = JSON.stringify(given, null, spaced ? 2 : 0)
        const members = Object.entries(JSON.parse(text) as object).map(([name, member]: [string, unknown]) => [name, emptied(member)])
        expect(JSON.parse(outlineOf(text))).toEqual(Object.fromEntries(members))
      }),
    )
    expect(jsonIn(outlineOf(`{"a":${'['.repeat(100_000)}`))).toBeUndefined()
  })

  test('what nests too deep is not parsed', () => {
    expect(() => parseJson('['.repeat(100_000))).toThrow(RangeError)
    expect(() => parseJson('[[', 2)).toThrow(SyntaxError)
    expect(parseJson('[[1]]', 2)).toEqual([[1]])
    expect(() => parseJson('[[1]]', 1)).toThrow('at most 1 levels')
    expect(jsonIn(`${'['.repeat(600)}${']'.repeat(600)}`)).toBeUndefined()
  })

  test('what has too many members is not parsed, and strings are one', () => {
    const { jsonMembers } = limits
    expect(() => parseJson(`[${'1,'.repeat(jsonMembers)}`)).toThrow(`at most ${jsonMembers} members`)
    expect(() => parseJson('[' + '{},'.repeat(jsonMembers / 2) + '1')).toThrow(RangeError)
    expect(() => parseJson('{' + '"a":1,'.repeat(jsonMembers))).toThrow(RangeError)
    expect(parseJson(`[${'1,'.repeat(jsonMembers - 1)}1]`)).toHaveLength(jsonMembers)
    expect(parseJson(JSON.stringify(',{['.repeat(jsonMembers)))).toBe(',{['.repeat(jsonMembers))
  })

  test('an outline ends where there is more than a message has', () => {
    expect(outlineOf('{' + '"a":[],'.repeat(100_000)).length).toBeLessThan(1000)
  })

  test('it counts levels, not brackets', () => {
    expect(isTextDeeperThan('[[],[],[],[[]]]', 3)).toBe(false)
    expect(isTextDeeperThan('[[],[],[],[[]]]', 2)).toBe(true)
    expect(isTextDeeperThan('"[[[["', 0)).toBe(false)
    expect(isTextDeeperThan('["\\\\",["\\"]"]]', 1)).toBe(true)
  })

  test('any text is read to its end at most once', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('[', ']', '{', '"', '\\', ' ') }),
        (text) => typeof isTextDeeperThan(text, 3) === 'boolean',
      ),
    )
    expect(isTextDeeperThan('"'.padEnd(5_000_000, '\\'), 64)).toBe(false)
    expect(isTextDeeperThan(`"${'\\"'.repeat(2_500_000)}`, 64)).toBe(false)
  })

  test('a value that is far too deep, or has no end, does not overflow the stack', () => {
    let deep: unknown = {}
    for (let level = 0; level < 100_000; level++) deep = [deep]
    expect(isDeeperThan(deep, 64)).toBe(true)
    const endless: unknown[] = []
    endless.push(endless)
    expect(isDeeperThan(endless, 64)).toBe(true)
  })
})

test('a list that is too long is refused without looking at its entries', () => {
  let looked = 0
  const entry = z.custom(() => {
    looked++
    return false
  })
  expect(list(entry, 3).safeParse([1, 2, 3, 4]).error?.issues).toMatchObject([{ code: 'too_big', maximum: 3 }])
  expect(looked).toBe(0)
  expect(list(z.number(), 3).parse([1, 2, 3])).toEqual([1, 2, 3])
})

test('bytes are counted as UTF-8', () => {
  expect(utf8Length('aé€😀')).toBe(1 + 2 + 3 + 4)
})

test.each([undefined, null, {}, { uamp: null }, { uamp: [1] }, { uamp: 'no' }])('%j has nothing of ours', (slot) => {
  expect(uampIn(slot)).toEqual({})
})

test('what is ours is given as it is', () => {
  const uamp = { mode: 'ask' }
  expect(uampIn({ uamp, other: 1 })).toBe(uamp)
})
