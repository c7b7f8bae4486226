/**
 * Gemini signs parts of its answer (a call, a text, a thought) and wants each signature back in the same place. UAMP has signatures
 * only on thoughts, so the signature of a call or a text is kept as an empty thought right before it. The mark distinguishes it from
 * signatures of other vendors, which are in the same history if the model has changed.
 */
const MARK = 'google:'

/** Google accepts this for a call without its signature: one of another vendor, or one whose signature a client dropped. */
export const UNSIGNED = 'skip_thought_signature_validator'

export function kept(signature: string): string {
  return MARK + signature
}

export function given(kept: string | undefined): string | undefined {
  return kept?.startsWith(MARK) ? kept.slice(MARK.length) : undefined
}

const OWN_ID = 'uamp-'

/** An id for a call that Gemini gave none. It is not sent back. */
export function newCallId(newId: () => string): string {
  return OWN_ID + newId()
}

export function wireId(id: string): { id?: string } {
  return id.startsWith(OWN_ID) ? {} : { id }
}
