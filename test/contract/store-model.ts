import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Group, Operation, Store } from '../../src/core/ports/store.ts'
import type { Json } from '../../src/protocol/json.ts'

/** An operation whose condition is relative to what is there: `met` takes the real version or position, `unmet` a wrong one. */
interface Action {
  readonly op: Operation['op']
  readonly name: string
  readonly sort: string
  readonly ttlMs: number | undefined
  readonly condition: 'none' | 'met' | 'unmet'
}

const NAMES = ['a', 'b', 'c', '😀', '\uff5e']

const action: fc.Arbitrary<Action> = fc.record({
  op: fc.constantFrom('set', 'set', 'append', 'append', 'delete', 'drop'),
  name: fc.constantFrom(...NAMES),
  sort: fc.constantFrom('', '1', '2', '\uff5e', '😀'),
  ttlMs: fc.constantFrom(undefined, 0, 50, 500),
  condition: fc.constantFrom('none', 'none', 'met', 'met', 'unmet'),
})

/** Batches begun together, without waiting, and then time that passes. */
const round = fc.record({
  batches: fc.array(fc.array(action, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
  ms: fc.constantFrom(0, 10, 60, 20_000),
})

/** Random histories, compared with the plainest store there can be. */
export function storeModelTest(open: () => Promise<Store>, pass: (ms: number) => void): void {
  test('behaves like the model', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 12 }), async (rounds) => {
        const store = await open()
        const model = new Model()
        for (const { batches, ms } of rounds) {
          const expected: string[] = []
          const begun = batches.map((actions) => {
            const operations = actions.map((item, at) => model.operation(item, at))
            expected.push(model.batch(operations) ? 'done' : 'conflict')
            return begin(store, operations)
          })
          const outcomes = await Promise.allSettled(begun)
          expect(outcomes.map(result)).toEqual(expected)
          await compareRecords(store, model)
          pass(ms)
          model.time += ms
          await compareRecords(store, model)
          await compareStreams(store, model)
        }
        await store.close()
      }),
      { numRuns: 50 },
    )
  })
}

function begin(store: Store, operations: readonly Operation[]): Promise<unknown> {
  const [only] = operations
  if (operations.length === 1 && only?.op === 'append') return store.append(only.stream, only.group, only)
  if (operations.length === 1 && only?.op === 'set') return store.set(only.key, only.value, { ...only.options, sync: true })
  return store.batch(operations, { sync: operations.length === 2 })
}

function result(outcome: PromiseSettledResult<unknown>): unknown {
  return outcome.status === 'fulfilled' ? 'done' : (outcome.reason as { code: unknown }).code
}

async function compareStreams(store: Store, model: Model): Promise<void> {
  for (const name of NAMES) {
    const groups: Group[] = []
    for await (const group of store.read(name)) groups.push(group)
    expect(groups).toEqual(model.streams.get(name) ?? [])
    expect(await store.last(name)).toBe(model.last(name))
  }
}

async function compareRecords(store: Store, model: Model): Promise<void> {
  for (const key of NAMES) {
    const stored = await store.get(key)
    expect(stored?.value).toEqual(model.find(key)?.value)
    expect(model.learn(key, stored?.version)).toBe(true)
  }
  const [up, down] = [await listed(store, false), await listed(store, true)]
  // Records with the same sort key come in an order of the store's own.
  expect(down).toEqual(up.toReversed())
  expect(up.toSorted()).toEqual(model.listed('i').toSorted())
  const sorts = up.map((key) => Buffer.from(model.find(key)?.sort ?? ''))
  expect(sorts).toEqual(sorts.toSorted(Buffer.compare))
}

async function listed(store: Store, descending: boolean): Promise<string[]> {
  const keys: string[] = []
  let after: string | undefined
  do {
    const { items, next } = await store.list('i', { limit: 2, descending, ...(after !== undefined && { after }) })
    keys.push(...items.map(({ key }) => key))
    after = next
  } while (after !== undefined)
  return keys
}

interface Kept {
  readonly value: Json
  /** The store's version, or a negative number until it is known. */
  version: number
  readonly expires: number
  readonly sort: string | undefined
}

class Model {
  time = 0
  streams = new Map<string, readonly Group[]>()
  records = new Map<string, Kept>()
  readonly #highest = new Map<string, number>()
  #count = 0

  last(stream: string): number {
    return this.streams.get(stream)?.at(-1)?.last ?? 0
  }

  find(key: string): Kept | undefined {
    const kept = this.records.get(key)
    return kept && kept.expires > this.time ? kept : undefined
  }

  listed(index: string): string[] {
    return [...this.records.keys()].filter((key) => this.find(key)?.sort !== undefined && index === 'i')
  }

  /** Whether a version is what it may be: above all that the key has had, and the same until the next set. */
  learn(key: string, version: number | undefined): boolean {
    const kept = this.find(key)
    if (!kept || version === undefined) return !kept && version === undefined
    const right = kept.version > 0 ? version === kept.version : version > (this.#highest.get(key) ?? 0)
    this.#highest.set(key, version)
    kept.version = version
    return right
  }

  operation({ op, name, sort, ttlMs, condition }: Action, at: number): Operation {
    const wrong = condition === 'unmet' ? 1_000_000_000 : 0
    const ifVersion = Math.max(this.find(name)?.version ?? 0, 0) + wrong
    const conditional = condition !== 'none'
    switch (op) {
      case 'append': {
        const first = this.last(name) + 1 + 2 * at
        const group = { first, last: first + 1, text: `${this.#count++}` }
        return { op, stream: name, group, ...(conditional && { expected: this.last(name) + wrong }) }
      }
      case 'drop':
        return { op, stream: name }
      case 'delete':
        return { op, key: name, ...(conditional && { ifVersion }) }
      case 'set': {
        const options = {
          ...(conditional && { ifVersion }),
          ...(ttlMs !== undefined && { ttlMs }),
          ...(sort !== '2' && { index: [['i', sort]] as const }),
        }
        return { op, key: name, value: { count: this.#count++ }, options }
      }
    }
  }

  batch(operations: readonly Operation[]): boolean {
    const before = { streams: new Map(this.streams), records: new Map(this.records) }
    const done = operations.every((operation) => this.#apply(operation))
    if (!done) Object.assign(this, before)
    return done
  }

  #apply(operation: Operation): boolean {
    switch (operation.op) {
      case 'append': {
        const { stream, group, expected } = operation
        if (expected !== undefined && expected !== this.last(stream)) return false
        if (group.first <= this.last(stream)) return false
        this.streams.set(stream, [...(this.streams.get(stream) ?? []), group])
        return true
      }
      case 'drop':
        this.streams.delete(operation.stream)
        return true
      case 'delete':
        if (!this.#matches(operation.key, operation.ifVersion)) return false
        this.records.delete(operation.key)
        return true
      case 'set': {
        const { key, value, options = {} } = operation
        if (!this.#matches(key, options.ifVersion)) return false
        this.records.set(key, {
          value,
          version: -1,
          expires: this.time + (options.ttlMs ?? Infinity),
          sort: options.index?.find(([name]) => name === 'i')?.[1],
        })
        return true
      }
    }
  }

  #matches(key: string, ifVersion: number | undefined): boolean {
    return ifVersion === undefined || ifVersion === (this.find(key)?.version ?? 0)
  }
}
