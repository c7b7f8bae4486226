/** What the schemas of all generations share. */
import * as z from 'zod/mini'
import { limits } from '../../protocol/limits.ts'

/** Characters of a page token, a webhook's token or its credentials; and of an address. */
const SECRET = 4_096
const URL_LENGTH = 8_192

/** Clients write null for what they leave out. */
export const maybe = <T extends z.core.SomeType>(schema: T) => z.optional(z.nullable(schema))

const text = (max: number) => z.string().check(z.maxLength(max))

/** ProtoJSON may write an empty string for what is not there. */
export const Name = text(limits.idLength)
export const Id = Name.check(z.minLength(1, 'must not be empty'))
export const Secret = text(SECRET)
/** It becomes part of a header. */
export const HeaderText = Secret.check(z.refine((line) => !/[\r\n\0]/.test(line), 'must be one line'))

const ABSOLUTE = 'must be an absolute URL'
const isUrl = (url: string) => url.length <= URL_LENGTH && URL.canParse(url)
export const Url = z.string().check(z.refine(isUrl, ABSOLUTE))
export const MaybeUrl = maybe(z.string().check(z.refine((url) => url === '' || isUrl(url), ABSOLUTE)))

/** ProtoJSON takes the standard alphabet and the one for URLs, with padding or without. */
export const isBase64 = (bytes: string) => /^[A-Za-z0-9+/_-]*={0,2}$/.test(bytes) && bytes.replace(/=+$/, '').length % 4 !== 1
export const Base64 = z.string().check(z.refine(isBase64, 'must be base64'))
