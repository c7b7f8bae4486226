import { base64Url } from '../protocol/base64.ts'
import { bareType, bytesOf, isCanonical } from '../wire/compact-jws.ts'
import { envelopeError } from './codes.ts'
import { didUrl } from './did.ts'
import { algorithmOf, isSignature, strictIn, type SigningKey, type VerifyKey } from './signature.ts'
import { strictObject } from './strict-json.ts'

/** The longest document that is read. */
const CHARS = 256 * 1024

/** What a signature is of: a manifest cannot pass for a hub. */
export type DocumentType = 'manifest+jws' | 'hub+jws'

const encoder = new TextEncoder()

/** A document as a compact JWS: who signed it is in its header, because the schema of a manifest has no place for it. */
export async function signDocument(document: object, typ: DocumentType, { id, alg, sign }: SigningKey): Promise<string> {
  const [head, body] = [JSON.stringify({ alg, kid: id, typ }), JSON.stringify(document)].map((text) => base64Url(encoder.encode(text)))
  return `${head}.${body}.${base64Url(await sign(encoder.encode(`${head}.${body}`)))}`
}

/** Verifies a document. Throws `4.01` if none of these keys has signed it. */
export async function verifyDocument(
  text: string,
  typ: DocumentType,
  keys: readonly VerifyKey[],
): Promise<Readonly<Record<string, unknown>>> {
  const parts = text.length > CHARS ? [] : text.trim().split('.', 4)
  const [head = '', body = '', signature = ''] = parts
  const header = parts.length === 3 && parts.every(isCanonical) ? strictIn(head) : undefined
  const { kid, typ: type, alg, ...rest } = header ?? {}
  const isKnown = typeof kid === 'string' && typeof type === 'string' && bareType(type) === typ && Object.keys(rest).length === 0
  if (!isKnown) throw envelopeError('4.01', `The document is not a signed ${typ}`, 'signature')
  const input = encoder.encode(`${head}.${body}`)
  for (const key of keys) {
    if (key.alg !== algorithmOf(alg) || didUrl(key.id) !== didUrl(kid)) continue
    if (await isSignature(key, bytesOf(signature), input)) return strictObject(bytesOf(body))
  }
  throw envelopeError('4.01', 'The document is not signed by a key of its server', 'signature')
}
