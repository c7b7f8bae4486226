import type { Json } from '../../protocol/json.ts'

/** One group commit of a stream: the texts of positions `first` to `last`. */
export interface Group {
  readonly first: number
  readonly last: number
  readonly text: string
}

/** Durable. Streams are append-only groups of texts; records are versioned, expire, and are listed through indexes. */
export interface Store {
  /**
   * One group is one row. Rejects with `conflict` when `expected` is given and is not the stream's last position (0: empty).
   * With `sync` it resolves only once the group would survive a loss of power, else once it would survive `kill -9`.
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
  /** Large values may be read one by one: what changes meanwhile comes as it is then, and what goes is missing from the page. */
  list(index: string, page: PageRequest & { readonly descending?: boolean }): Promise<Page<{ readonly key: string; readonly value: Json }>>
  /**
   * How many records an index has; with `from`, those whose sort key is that or above. Looks at no record, so that one which has
   * expired counts until it is purged.
   */
  count(index: string, options?: { readonly from?: string }): Promise<number>
  /** The keys of an index, with the size of their values instead of these. Also those that have expired and are not purged yet. */
  keys(index: string, page: PageRequest): Promise<Page<{ readonly key: string; readonly bytes: number }>>
  /**
   * All or nothing: what a turn's end, the ledger or a lease needs. Of what is said to be new (`ifVersion: 0`, `expected: 0`) nothing
   * has to be looked up, so say it where it is so.
   */
  batch(operations: readonly Operation[], options?: { readonly sync?: boolean }): Promise<void>
  /** Every record and every stream, in small steps and in no order. What changes meanwhile may be missing. */
  scan(): AsyncIterable<Kept>
  /** Bytes in use. What was deleted counts until it is purged. */
  bytes(): Promise<number>
  /**
   * Purges a little of what has expired or was dropped, and gives its room back: a step is so small that nobody has to wait for it.
   * True: there is more to do.
   */
  tidy(): Promise<boolean>
  /** Rejects when what is written now would not be kept: no space, a failing disk, a damaged file. Absent: that cannot happen. */
  probe?(): Promise<void>
  close(): Promise<void>
}

/** What there is under a key, without its value. */
export interface Kept {
  readonly type: 'record' | 'stream'
  readonly key: string
  readonly bytes: number
  /** Of a record: the indexes that list it, and its sort key in each. */
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
  /** Where `list` finds the record, each index once. A later `set` without it takes the record out of the index. */
  readonly index?: readonly Place[]
}

/** A pair and no property: names of indexes are all different, and objects of which each has a shape of its own are slow. */
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

export interface Page<T> {
  readonly items: readonly T[]
  /** The `after` of the next page; undefined on the last. */
  readonly next: string | undefined
}
