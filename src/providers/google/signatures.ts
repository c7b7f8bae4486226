/**
 * Gemini signs parts of its answer (a call, a text, a thought) and wants each signature back in the same place. UAMP keeps
 * signatures on thoughts only, so one of a call or a text is kept as an empty thought right before it. The mark tells it from
 * other vendors', which after a change of models stand in the same history.
 */
const MARK = 'google:'

/** What Google accepts for a call that it did not sign: another vendor's, or of a client that dropped the signature. */
export const UNSIGNED = 'skip_thought_signature_validator'

export function kept(signature: string): string {
  return MARK + signature
}

export function given(kept: string | undefined): string | undefined {
  return kept?.startsWith(MARK) ? kept.slice(MARK.length) : undefined
}

const OWN_ID = 'uamp-'

/** An id for a call to which Gemini gave none. It is not sent back, as nothing came with it. */
export function newCallId(newId: () => string): string {
  return OWN_ID + newId()
}

export function wireId(id: string): { id?: string } {
  return id.startsWith(OWN_ID) ? {} : { id }
}
