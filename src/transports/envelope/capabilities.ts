import { checkCapability } from '../../envelope/capability.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { didOf, didUrl, isSameDid } from '../../envelope/did.ts'
import type { Envelope } from '../../envelope/schema.ts'
import { isSignature, thumbprintOf, type VerifyKey } from '../../envelope/signature.ts'
import { bytesOf, isCanonical, objectIn } from '../../wire/compact-jws.ts'
import type { OwnDid } from './own-did.ts'
import type { SenderKeys } from './sender-keys.ts'

interface CapabilitiesOptions {
  readonly own: OwnDid
  readonly keys: SenderKeys
  /** The DIDs whose tokens count, beside this server's own. */
  readonly anchors: readonly string[]
  readonly now: () => number
}

interface Use {
  readonly envelope: Envelope
  readonly agent: string
  /** The key that signed the message. */
  readonly key: VerifyKey
}

/** Capability tokens (UAMP envelope §6.2). One that comes has to be right: a message is never taken as if it had brought none. */
export class Capabilities {
  readonly #options: CapabilitiesOptions

  constructor(options: CapabilitiesOptions) {
    this.#options = options
  }

  async check(token: string, { envelope: { from, intent }, agent, key }: Use): Promise<void> {
    const { own, keys, anchors, now } = this.#options
    const parts = token.split('.', 4)
    const [head = '', body = '', signature = ''] = parts
    const isWhole = parts.length === 3 && parts.every(isCanonical)
    const [header, claims] = isWhole ? [objectIn(head), objectIn(body)] : []
    if (!header || !claims) throw envelopeError('4.15', 'The capability token is not a JWT', 'cap_token')
    const { alg, kid, crit } = header
    const { iss } = claims
    if (typeof iss !== 'string' || ![own.of(), ...anchors].some((did) => isSameDid(did, iss))) {
      throw envelopeError('4.03', 'The capability token is of an issuer that is not trusted here', 'cap_token')
    }
    if (crit !== undefined || (kid !== undefined && (typeof kid !== 'string' || didOf(kid) !== didOf(iss)))) throw forged()
    const input = new TextEncoder().encode(`${head}.${body}`)
    const found = await keys.find(iss, kid)
    const fitting = found.filter((each) => each.alg === alg && (kid === undefined || each.id === didUrl(kid)))
    const isRight = await anySigned(fitting, bytesOf(signature), input)
    if (!isRight) throw forged()
    const audience = [own.of(), own.of(agent)]
    checkCapability(claims, { audience, from, intent, agent, now: now(), thumbprint: await thumbprintOf(key) })
  }
}

async function anySigned(keys: readonly VerifyKey[], signature: Uint8Array, input: Uint8Array): Promise<boolean> {
  for (const key of keys) if (await isSignature(key, signature, input)) return true
  return false
}

function forged(): Error {
  return envelopeError('4.01', 'The capability token is not signed by its issuer', 'cap_token')
}
