import { hashJson } from '../../protocol/canonical-json.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Gateway, Sender } from '../ports/session.ts'

/**
 * Asks for a signature in OpenAI's protocols. `chunk`: in the answer, where OpenAI's clients find it. `event`: as a separate event after
 * `[DONE]` of a streamed completion, where they do not look.
 */
const HEADER = 'x-uamp-signature'

export type SignaturePlace = 'chunk' | 'event'

export type Signing = Pick<Sender, 'requestHash'>

/** Undefined: the client asks for none. */
export function signatureAsked(headers: Headers): SignaturePlace | undefined {
  const asked = headers.get(HEADER)?.trim().toLowerCase()
  return asked === 'chunk' || asked === 'event' ? asked : undefined
}

/** The slot of a session whose client asks so. */
export function signSlot(place: SignaturePlace | undefined): { readonly uamp?: { readonly sign: true } } {
  return place === undefined ? {} : { uamp: { sign: true } }
}

/** The hash of a member of the body, as the client wrote it. Undefined if the answer is not to be signed: then nothing is parsed again. */
export function requestHash(
  gateway: Pick<Gateway, 'signs'>,
  place: SignaturePlace | undefined,
  { text, member }: { readonly text: string; readonly member: string },
): Promise<Signing> | undefined {
  if (!gateway.signs(place === undefined ? undefined : true)) return undefined
  return hashJson((JSON.parse(text) as Slot)[member]).then((hash) => ({ requestHash: hash }))
}
