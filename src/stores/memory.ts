import type { Group, Kept, ListRequest, Operation, Page, Place, SetOptions, Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { lowerBound, SortedKeys } from './memory-index.ts'
import { checkName } from '../core/basics/store-key.ts'

/** Sorts after every key. */
const LAST = '\u{10ffff}'
/** How many records each write checks for expiry. */
const SWEEP = 4

interface Entry {
  readonly text: string
  readonly version: number
  readonly expires: number
  readonly places: readonly Place[]
}

type Undo = () => void

export interface MemoryStoreOptions {
  readonly now?: () => number
  /** Most characters that it keeps: beyond them it is full, like a disk. */
  readonly mostBytes?: number
}

/** For tests, and for servers without a disk. Refuses what durable stores refuse. Ends with the process, so it needs no wall clock. */
export function memoryStore({ now = () => performance.now(), mostBytes = Infinity }: MemoryStoreOptions = {}): Store {
  const streams = new Map<string, Group[]>()
  const records = new Map<string, Entry>()
  const indexes = new Map<string, SortedKeys>()
  let version = 0
  let sweeper = records.entries()
  let held = 0
  let closed = false

  function append(stream: string, { first, last, text }: Group, expected?: number): Undo {
    if (!Number.isSafeInteger(last) || !Number.isSafeInteger(first) || first < 1 || last < first) {
      throw new UampError('invalid_request', `A group cannot have the positions ${first} to ${last}`)
    }
    const at = position(stream)
    if (expected !== undefined && expected !== at) throw new UampError('conflict', `The stream is at ${at}, not at ${expected}`)
    if (first <= at) throw new UampError('conflict', `The stream is at ${at} already, a group cannot begin at ${first}`)
    checkRoom(text.length)
    const groups = streams.get(stream) ?? []
    groups.push({ first, last, text })
    streams.set(stream, groups)
    held += text.length
    return () => {
      groups.pop()
      held -= text.length
    }
  }

  function checkRoom(more: number): void {
    if (more > 0 && held + more > mostBytes) throw new UampError('overloaded', 'The store is full')
  }

  function position(stream: string): number {
    checkName(stream)
    return streams.get(stream)?.at(-1)?.last ?? 0
  }

  function drop(stream: string): Undo {
    checkName(stream)
    const groups = streams.get(stream)
    const size = sizeOf(groups)
    streams.delete(stream)
    held -= size
    return () => {
      if (groups) streams.set(stream, groups)
      held += size
    }
  }

  function set(key: string, value: Json, { ttlMs = Infinity, ifVersion, index: places = [] }: SetOptions = {}): Undo {
    match(key, ifVersion)
    for (const [name, sort] of places) {
      checkName(name)
      checkName(sort)
    }
    // A version is never used again, even after a delete: an expired lease must not be taken for its successor.
    version++
    const text = JSON.stringify(value)
    checkRoom(text.length - (records.get(key)?.text.length ?? 0))
    return put(key, { text, version, expires: now() + ttlMs, places })
  }

  function remove(key: string, ifVersion?: number): Undo {
    match(key, ifVersion)
    return put(key, undefined)
  }

  function put(key: string, entry: Entry | undefined): Undo {
    const before = records.get(key)
    const [old, places] = [before?.places ?? [], entry?.places ?? []]
    for (const [name, sort] of old) {
      if (has(places, name, sort)) continue
      const index = indexes.get(name)
      index?.remove(sort, key)
      if (index?.size === 0) indexes.delete(name)
    }
    for (const [name, sort] of places) {
      if (has(old, name, sort)) continue
      const index = indexes.get(name) ?? new SortedKeys()
      indexes.set(name, index)
      index.add(sort, key)
    }
    if (entry) records.set(key, entry)
    else records.delete(key)
    held += (entry?.text.length ?? 0) - (before?.text.length ?? 0)
    return () => put(key, before)
  }

  function find(key: string): Entry | undefined {
    checkName(key)
    const entry = records.get(key)
    return entry && entry.expires > now() ? entry : undefined
  }

  function match(key: string, ifVersion: number | undefined): void {
    const found = find(key)?.version ?? 0
    if (ifVersion !== undefined && ifVersion !== found) throw new UampError('conflict', `The record has version ${found}, not ${ifVersion}`)
  }

  function list(index: string, { after, afterSort, limit = 100, descending = false }: ListRequest): Listed {
    checkName(index)
    if (!Number.isSafeInteger(limit) || limit < 1) throw new UampError('invalid_request', 'A page has at least one item')
    const items: { key: string; value: Json }[] = []
    let last: string | undefined
    // Behind every key, in either direction.
    const behind = afterSort === undefined ? undefined : JSON.stringify([afterSort, descending ? '' : LAST])
    for (const { key, cursor } of (indexes.get(index) ?? new SortedKeys()).walk(after ?? behind, descending)) {
      const entry = find(key)
      if (!entry) continue
      if (items.length >= limit) return { items, next: last }
      items.push({ key, value: JSON.parse(entry.text) as Json })
      last = cursor
    }
    return { items, next: undefined }
  }

  function apply(operation: Operation): Undo {
    switch (operation.op) {
      case 'set':
        return set(operation.key, operation.value, operation.options)
      case 'delete':
        return remove(operation.key, operation.ifVersion)
      case 'append':
        return append(operation.stream, operation.group, operation.expected)
      case 'drop':
        return drop(operation.stream)
    }
  }

  function sweep(): void {
    for (let looked = 0; looked < SWEEP; looked++) {
      const { done, value } = sweeper.next()
      if (done) {
        sweeper = records.entries()
        return
      }
      if (value[1].expires <= now()) put(value[0], undefined)
    }
  }

  function assertOpen(): void {
    if (closed) throw new UampError('internal', 'The store is closed')
  }

  function write<T>(run: () => T): T {
    assertOpen()
    sweep()
    return run()
  }

  return {
    async append(stream, group, { expected } = {}) {
      write(() => append(stream, group, expected))
    },
    async *read(stream, { after = 0, limit = Infinity } = {}) {
      checkName(stream)
      let from = after
      for (let left = limit; left > 0; left--) {
        assertOpen()
        const groups = streams.get(stream) ?? []
        const group = groups[lowerBound(groups, ({ last }) => last <= from)]
        if (!group) return
        yield group
        from = group.last
      }
    },
    async last(stream) {
      assertOpen()
      return position(stream)
    },
    async drop(stream) {
      write(() => drop(stream))
    },
    async get(key) {
      assertOpen()
      const entry = find(key)
      return entry && { value: JSON.parse(entry.text) as Json, version: entry.version }
    },
    async set(key, value, options) {
      write(() => set(key, value, options))
      return version
    },
    async delete(key) {
      write(() => remove(key))
    },
    async list(index, page) {
      assertOpen()
      return list(index, page)
    },
    async count(index, { from } = {}) {
      assertOpen()
      checkName(index)
      if (from !== undefined) checkName(from)
      const keys = indexes.get(index)
      return (from === undefined ? keys?.size : keys?.countFrom(from)) ?? 0
    },
    async keys(index, { after, limit = 100 }) {
      assertOpen()
      checkName(index)
      const found: { key: string; cursor: string }[] = []
      for (const place of (indexes.get(index) ?? new SortedKeys()).walk(after, false)) if (found.push(place) > limit) break
      const shown = found.slice(0, limit)
      const items = shown.map(({ key }) => ({ key, bytes: records.get(key)?.text.length ?? 0 }))
      return { items, next: found.length > limit ? shown.at(-1)?.cursor : undefined }
    },
    async *scan() {
      for (const [key, { text, places }] of records) {
        assertOpen()
        if (find(key)) yield { type: 'record', key, bytes: text.length, index: Object.fromEntries(places) } satisfies Kept
      }
      for (const [key, groups] of streams) {
        assertOpen()
        yield { type: 'stream', key, bytes: sizeOf(groups), index: {} } satisfies Kept
      }
    },
    async bytes() {
      assertOpen()
      return held
    },
    async tidy() {
      assertOpen()
      for (const [key, { expires }] of records) if (expires <= now()) put(key, undefined)
      return false
    },
    async batch(operations) {
      const undo: Undo[] = []
      try {
        write(() => operations.forEach((operation) => undo.push(apply(operation))))
      } catch (thrown) {
        for (const step of undo.reverse()) step()
        throw thrown
      }
    },
    async close() {
      closed = true
    },
  }
}

/** Counts characters, which is close enough to bytes. */
function sizeOf(groups: readonly Group[] = []): number {
  return groups.reduce((sum, { text }) => sum + text.length, 0)
}

function has(places: Entry['places'], name: string, sort: string): boolean {
  return places.some((place) => place[0] === name && place[1] === sort)
}

type Listed = Page<{ readonly key: string; readonly value: Json }>
