/** What the schemas of all generations share. */
import * as z from 'zod/mini'
import { isRecord } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import type { Struct } from './model.ts'

/** Characters of a page token, a webhook's token or its credentials; and of an address. */
const SECRET = 4_096
const URL_LENGTH = 8_192

/** Clients write null for what they leave out. */
export const maybe = <T extends z.core.SomeType>(schema: T) => z.optional(z.nullable(schema))

/** Fields without those that are not set, for which clients write null and ProtoJSON an empty text. */
export function filled<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], null | undefined> } {
  const set = Object.entries(fields).filter(([, value]) => value != null && value !== '')
  return Object.fromEntries(set) as { [K in keyof T]: Exclude<T[K], null | undefined> }
}

const text = (max: number) => z.string().check(z.maxLength(max))

/** ProtoJSON may write an empty text for a name that is not set. */
export const Name = text(limits.idLength)
export const Id = Name.check(z.minLength(1, 'must not be empty'))
export const Secret = text(SECRET)
/** Becomes part of a header. */
export const HeaderText = Secret.check(z.refine((line) => !/[\r\n\0]/.test(line), 'must be one line'))

/** Handed on by reference, untouched, as every extension slot is. */
export const Metadata = maybe(z.custom<Struct>(isRecord, 'must be an object'))

const ABSOLUTE = 'must be an absolute URL'
const isUrl = (url: string) => url.length <= URL_LENGTH && URL.canParse(url)
export const Url = z.string().check(z.refine(isUrl, ABSOLUTE))
export const MaybeUrl = maybe(z.string().check(z.refine((url) => url === '' || isUrl(url), ABSOLUTE)))

/** ProtoJSON takes the standard alphabet and the one for URLs, with padding or without. */
export const isBase64 = (bytes: string) => /^[A-Za-z0-9+/_-]*={0,2}$/.test(bytes) && bytes.replace(/=+$/, '').length % 4 !== 1
export const Base64 = z.string().check(z.refine(isBase64, 'must be base64'))

/** A query has numbers as texts. */
export const numeral = z.transform((value: unknown) => (typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value))
export const PAGE_SIZE = 50
export const PageSize = z.pipe(numeral, z.int().check(z.gte(1), z.lte(100)))

/** The fields of requests that have fields of their own. `metadata` and `data` belong to the client and stay as they are. */
const INSIDE = [
  'message',
  'request',
  'parts',
  'content',
  'file',
  'configuration',
  'config',
  'pushNotification',
  'pushNotificationConfig',
  'taskPushNotificationConfig',
]

/**
 * A parser of ProtoJSON also takes the names of the Protocol Buffer definition: `message_id` for `messageId`. A value without any of
 * them is handed on as it is.
 */
export function fromProtoNames(value: unknown): unknown {
  if (Array.isArray(value)) return mapped(value)
  if (!isRecord(value)) return value
  let renamed: Record<string, unknown> | undefined
  for (const name in value) {
    if (!name.includes('_')) continue
    renamed ??= { ...value }
    delete renamed[name]
    renamed[name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())] ??= value[name]
  }
  for (const name of INSIDE) {
    const inner = (renamed ?? value)[name]
    if (typeof inner !== 'object' || inner === null) continue
    const read = fromProtoNames(inner)
    if (read === inner) continue
    renamed ??= { ...value }
    renamed[name] = read
  }
  return renamed ?? value
}

function mapped(values: readonly unknown[]): unknown {
  const read = values.map(fromProtoNames)
  return read.some((value, index) => value !== values[index]) ? read : values
}
