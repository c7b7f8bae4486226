import type { Json } from '../../protocol/json.ts'

/** One group commit of a stream: the texts of positions `first` to `last`. */
export interface Group {
  readonly first: number
  readonly last: number
  readonly text: string
}

/** Durable streams and records. A stream is an append-only list of groups; a record has a version, may expire, and is listed by indexes. */
export interface Store {
  /**
   * Writes one group as one row. Rejects with `conflict` if `expected` is given and is not the stream's last position (0: empty).
   * With `sync` it resolves once the group would survive a loss of power, otherwise once it would survive `kill -9`.
   */
  append(stream: string, group: Group, options?: { readonly expected?: number; readonly sync?: boolean }): Promise<void>
  /** Groups whose `last` is above `after`, in order. A group may begin at or before `after`. */
  read(stream: string, options?: { readonly after?: number; readonly limit?: number }): AsyncIterable<Group>
  /** The stream's last position; 0 when there is none. */
  last(stream: string): Promise<number>
  drop(stream: string): Promise<void>
  get(key: string): Promise<Stored | undefined>
  /** Returns the new version. */
  set(key: string, value: Json, options?: SetOptions & { readonly sync?: boolean }): Promise<number>
  delete(key: string): Promise<void>
  /**
   * In the order of the sort keys. Records with the same one come in an order of the store's own, which is the same on every page. Large
   * values may be read one by one, so a record that changes meanwhile comes in its new form, and a deleted one is missing.
   */
  list(index: string, page: ListRequest): Promise<Page<{ readonly key: string; readonly value: Json }>>
  /**
   * How many records an index has; with `from`, only those with this sort key or a higher one. An expired record counts until it
   * is purged.
   */
  count(index: string, options?: { readonly from?: string }): Promise<number>
  /** The keys of an index with the sizes of their values, including expired records that are not purged yet. */
  keys(index: string, page: PageRequest): Promise<Page<{ readonly key: string; readonly bytes: number }>>
  /**
   * Applies all operations or none. Say when a record or stream is new (`ifVersion: 0`, `expected: 0`): the store then skips the
   * lookup.
   */
  batch(operations: readonly Operation[], options?: { readonly sync?: boolean }): Promise<void>
  /** Every record and every stream, in small steps and in no order. A key that changes meanwhile may be missing. */
  scan(): AsyncIterable<Kept>
  /** Bytes in use. Deleted data counts until it is purged. */
  bytes(): Promise<number>
  /**
   * Purges a little expired or dropped data and frees its space. The step is so small that no other call waits long. True: there is
   * more to purge.
   */
  tidy(): Promise<boolean>
  /** Rejects if a write would fail now: no space, a failing disk, a damaged file. Absent: writes cannot fail. */
  probe?(): Promise<void>
  close(): Promise<void>
}

/** A record or a stream, without its content. */
export interface Kept {
  readonly type: 'record' | 'stream'
  readonly key: string
  readonly bytes: number
  /** For a record: the indexes that list it, with its sort key in each. */
  readonly index: Readonly<Record<string, string>>
}

export interface Stored {
  readonly value: Json
  readonly version: number
}

export interface SetOptions {
  readonly ttlMs?: number
  /** Rejects with `conflict` unless the record has this version. 0: only if absent. */
  readonly ifVersion?: number
  /** The indexes that list the record, each at most once. A later `set` that leaves one out removes the record from it. */
  readonly index?: readonly Place[]
}

/** A pair, not an object keyed by the index: index names all differ, and objects that each have their own shape are slow. */
export type Place = readonly [index: string, sort: string]

export interface SetOperation {
  readonly op: 'set'
  readonly key: string
  readonly value: Json
  readonly options?: SetOptions
}

export type Operation =
  | SetOperation
  | { readonly op: 'delete'; readonly key: string; readonly ifVersion?: number }
  | { readonly op: 'append'; readonly stream: string; readonly group: Group; readonly expected?: number }
  | { readonly op: 'drop'; readonly stream: string }

export interface PageRequest {
  /** The `next` of the page before. */
  readonly after?: string
  /** Default 100. */
  readonly limit?: number
}

export interface ListRequest extends PageRequest {
  /** Instead of `after`: begins behind all entries with this sort key. */
  readonly afterSort?: string | undefined
  readonly descending?: boolean
}

export interface Page<T> {
  readonly items: readonly T[]
  /** The `after` of the next page; undefined on the last. */
  readonly next: string | undefined
}
