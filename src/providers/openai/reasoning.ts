/**
 * A thought's signature holds a reasoning item: its id and its encrypted content, `rs_1.gAAAA…`. The form shows that it is OpenAI's,
 * because a signature of another provider must not be sent here.
 */
export interface KeptItem {
  readonly id: string | undefined
  readonly encrypted: string
}

const KEPT = /^(rs_[\w-]+)\.(\S+)$/
/** Encrypted content without an id, as OpenAI's own clients keep it. */
const BARE = /^gAAAA[\w-]+=*$/

export function toSignature(id: unknown, encrypted: string): string {
  const whole = `${String(id)}.${encrypted}`
  return KEPT.test(whole) ? whole : encrypted
}

export function fromSignature(signature: string): KeptItem | undefined {
  const [, id, encrypted] = KEPT.exec(signature) ?? []
  if (encrypted !== undefined) return { id, encrypted }
  return BARE.test(signature) ? { id: undefined, encrypted: signature } : undefined
}
