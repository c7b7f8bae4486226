import { canonicalJson, sha256 } from '../protocol/canonical-json.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * The text that is signed: RFC 8785 of exactly the members that came, at every depth, without `sig` (UAMP envelope §4.2). Nothing is
 * added, so a default that the sender left out is not signed either.
 */
export function signedText({ sig: _, ...members }: Members): string {
  return canonicalJson(members)
}

/** The SHA-256 of that text, in hexadecimal digits: what a signature is of, and what `context` names with `sha256:` before it. */
export function hashOf(envelope: Members): Promise<string> {
  return sha256(signedText(envelope))
}

/** The payload of the signature, byte for byte (UAMP envelope §6.3). */
export function payloadOf(hash: string): string {
  return `{"sha256":"${hash}"}`
}
