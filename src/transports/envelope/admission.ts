import { callerName, principalId } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { didOf, didOfUrl, isSameDid } from '../../envelope/did.ts'
import type { ReadMessage } from '../../envelope/message.ts'
import type { Envelope } from '../../envelope/schema.ts'
import { readSignature, verifySignature, type Signature, type Verified } from '../../envelope/signature.ts'
import type { Capabilities } from './capabilities.ts'
import type { OwnDid } from './own-did.ts'
import type { SenderKeys } from './sender-keys.ts'
import type { EnvelopeSettings } from './settings.ts'

/** Where an issuer has its agents. */
const AGENTS_PATH = '/agents'

/** A message that is what it says, from whom it says. */
export interface Admitted {
  readonly envelope: Envelope
  /** What was signed, in hexadecimal digits. */
  readonly hash: string
  /** The agent that it is for. */
  readonly agent: string
  /** In whose name the agent is asked. */
  readonly principal: Principal
}

interface AdmissionOptions {
  readonly host: Pick<Host, 'now' | 'gateway'>
  readonly own: OwnDid
  readonly keys: SenderKeys
  readonly capabilities: Capabilities
  /** The name of a caller, by the DID that they sign as. */
  readonly senders: Readonly<Record<string, string>>
  readonly settings: Pick<EnvelopeSettings, 'skewSeconds' | 'insecureDev'>
}

/** Lets messages in. What costs nothing is looked at first, and nothing is done in the name of a sender before the signature holds. */
export class Admission {
  readonly #options: AdmissionOptions
  readonly #senders: ReadonlyMap<string, string>

  constructor(options: AdmissionOptions) {
    this.#options = options
    this.#senders = new Map(Object.entries(options.senders).map(([did, name]) => [didOf(did), name]))
  }

  async admit({ envelope, members }: ReadMessage, call: Pick<KnownCall, 'agent' | 'root' | 'principal'>): Promise<Admitted> {
    const { host, own, capabilities, settings } = this.#options
    const { from, to, ts, sig } = envelope
    const signature = readSignature(sig)
    if (signature.kid !== undefined && !isSameDid(signature.kid, from)) {
      throw envelopeError('4.01', 'The message is signed with a key of somebody else than its sender', 'signature')
    }
    if (Math.abs(host.now() - Date.parse(ts)) > settings.skewSeconds * 1000) {
      throw envelopeError('4.01', `The time of the message is more than ${settings.skewSeconds} seconds from ours`, 'skew')
    }
    const agent = own.agentIn(to, call)
    if (agent === undefined) throw envelopeError('4.03', 'The message is to nobody here', 'recipient')
    const principal = this.#senderOf(call.principal, from)
    const { hash, key } = await this.#verified(members, signature, from)
    host.gateway.checkSlots(envelope.ext)
    if (envelope.cap_token !== undefined) await capabilities.check(envelope.cap_token, { envelope, agent, key })
    host.gateway.authorize(principal, 'call', agent)
    return { envelope, hash, agent, principal }
  }

  /** A signature that names no key, or one whose key was replaced under its name, may be of a key that the sender has published since. */
  async #verified(members: ReadMessage['members'], signature: Signature, from: string): Promise<Verified> {
    const { keys } = this.#options
    const known = await keys.find(from, signature.kid)
    return verifySignature(members, signature, known).catch(async (thrown: unknown) => {
      const renewed = await keys.renewed(from)
      if (!renewed || renewed === known) throw thrown
      return verifySignature(members, signature, renewed)
    })
  }

  /** Who authenticates as one and signs as another could send what somebody else has signed (UAMP envelope §6.2). */
  #senderOf(principal: Principal, from: string): Principal {
    const { insecureDev } = this.#options.settings
    const name = callerName(principal)
    if (name === undefined) {
      if (!insecureDev)
        throw envelopeError('4.01', 'A message needs a client certificate or a bearer token beside its signature', 'missing')
      return principal
    }
    const named = this.#senders.get(didOf(from))
    const isTheirs = named === undefined ? isName(name, from) || isAgent(principal, from) : name === named
    if (isTheirs) return principal
    throw envelopeError('4.03', 'Whoever sends this message may not sign as its sender', 'sender')
  }
}

/** True if a name is this DID, or a URL that the DID stands for. One that is written otherwise than it reads leads to somebody else. */
function isName(name: string, did: string): boolean {
  if (name.startsWith('did:')) return isSameDid(name, did)
  const isAsWritten = /^https?:\/\/[^?#]*$/.test(name) && URL.canParse(name) && new URL(name).href === name
  return isAsWritten && isSameDid(didOfUrl(name), did)
}

/** True if its issuer says that the caller is one of its agents, and the DID is that agent's (AOAuth). A user of the same name is not. */
function isAgent({ id, issuer, subject }: Principal, did: string): boolean {
  if (issuer === undefined || subject === undefined) return false
  return id === principalId(issuer, subject, AGENTS_PATH) && isName(`${issuer.replace(/\/+$/, '')}${AGENTS_PATH}/${subject}`, did)
}
