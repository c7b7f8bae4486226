export type VendorName = 'openai' | 'responses' | 'compatible' | 'anthropic' | 'google'

/** What a request is about, in no vendor's words: fixtures are chosen and filled in by it. */
export interface Facts {
  /** The text of the last message that people wrote. */
  readonly user: string
  /** `image/png 68 bytes`, for each image of that message. */
  readonly images: readonly string[]
  /** What the tools answered since then, in order. */
  readonly results: readonly string[]
  /** How often tools were called and answered since then. */
  readonly rounds: number
  /** The names of the tools that the model may call. */
  readonly tools: readonly string[]
  /** A JSON schema for the answer was given. */
  readonly schema: boolean
}

/** How the vendor says no. `param` is the field, where the vendor names one. */
export interface Problem {
  readonly status: number
  readonly message: string
  readonly code?: string
  readonly param?: string
}

export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A body, as far as nobody has looked at it yet. */
export type Json = Record<string, unknown>

/** A request for an answer of the model. */
export interface Call {
  readonly vendor: Vendor
  readonly model: string
  readonly stream: boolean
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Json
}

/** One wire format: where it lives, what it lets in, how it refuses, and how a stream looks as one answer. */
export interface Vendor {
  readonly name: VendorName
  /** Folders of fixtures, the first that has the scenario wins. */
  readonly fixtures: readonly string[]
  /** Does this path, without the server's prefix, ask the model? `body` is what was sent, if it was JSON. */
  route(path: string, body: Json): { readonly model: string; readonly stream: boolean } | undefined
  /** The lists of models; `undefined` if the path is none. */
  models(path: string): unknown
  authorized(call: Pick<Call, 'headers' | 'query'>): boolean
  facts(body: Json): Facts
  /** What the vendor would answer 400 to. */
  check(call: Call, facts: Facts): Problem | undefined
  refuse(problem: Problem): Refusal
  /** An event of the stream that says that it failed. */
  failure(problem: Problem): string
  /** The events of a fixture as this request gets them: usage only if it was asked for, and the like. */
  adapt(events: readonly string[], body: Json): readonly string[]
  /** The whole answer, from the JSON of the stream's events. */
  fold(events: readonly Json[]): unknown
}

/** Keys that are refused. Every other one is right. */
export const BAD_KEY = 'bad-key'

export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
export const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
export const string = (value: unknown): string => (typeof value === 'string' ? value : '')

/** `image/png 68 bytes` of base64, or nothing if it is not base64. */
export function imageFact(mediaType: unknown, data: unknown): string | undefined {
  const encoded = string(data)
  if (typeof mediaType !== 'string' || encoded === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  return `${mediaType} ${Buffer.from(encoded, 'base64').length} bytes`
}

export function dataUrlFact(url: unknown): string | undefined {
  const match = /^data:([^;,]+);base64,(.*)$/s.exec(string(url))
  if (match) return imageFact(match[1], match[2])
  return /^https?:\/\//.test(string(url)) ? `image at ${string(url)}` : undefined
}

/** The first key that is not among the known ones. */
export function unknownKey(value: Json, known: string): string | undefined {
  const names = new Set(known.split(' '))
  return Object.keys(value).find((key) => !names.has(key))
}
