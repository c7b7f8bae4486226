/**
 * A reasoning item lives in a thought's signature: its id and its encrypted content, `rs_1.gAAAA…`. By the form it is known
 * whose it is: what another provider signed is not sent here.
 */
export interface KeptItem {
  readonly id: string | undefined
  readonly encrypted: string
}

const KEPT = /^(rs_[\w-]+)\.(\S+)$/
/** What OpenAI encrypts, as its own clients keep it: without the id. */
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
