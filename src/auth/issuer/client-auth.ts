import type { JSONWebKeySet, JWTPayload } from 'jose'
import { storeKey } from '../../core/basics/store-key.ts'
import { once } from '../../core/basics/once.ts'
import type { Call, Host } from '../../core/ports/transport.ts'
import { isEqual } from '../../core/secrets/is-equal.ts'
import { bytesIn } from '../../protocol/base64.ts'
import { wrongAssertion } from './assertion.ts'
import { ClientKeys } from './client-keys.ts'
import type { Client } from './clients.ts'
import { refused } from './errors.ts'
import type { Form } from './form.ts'

/** RFC 7523 §2.2. */
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** What a client may sign with. Only asymmetric ones: whoever can verify must not be able to sign. */
export const ASSERTION_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']
/** Neither an access token nor anything else that the key of a client may have signed. */
const ASSERTION_TYPES: readonly unknown[] = [undefined, 'JWT', 'jwt', 'client-authentication+jwt']
const MOST_CHARS = 8192

/** What a stranger is told, who must not learn which clients there are. The log says more. */
const WRONG = 'The client is not known, or has not proved to be it'
const NOTHING = 'The client must prove who it is: by HTTP Basic, with client_id and client_secret, or with a client_assertion'
const NOT_BASIC = 'The Authorization header of a client must be HTTP Basic, with its name and its secret'

export interface ClientAuthOptions {
  readonly host: Host
  readonly clients: ReadonlyMap<string, Client>
  readonly leewayMs: number
}

/** Why a client is refused. */
interface Wrong {
  /** For the log. */
  readonly because: string
  /** True if the client may know it. */
  readonly isTold?: boolean
  /** The client that was named, if there is one. */
  readonly name?: string
}

const told = (because: string): Wrong => ({ because, isTold: true })

/** Finds out which client asks for a token. What is wrong is counted for the address that it comes from, as wrong tokens are. */
export class ClientAuth {
  readonly #options: ClientAuthOptions
  readonly #keys = new Map<string, ClientKeys>()

  constructor(options: ClientAuthOptions) {
    this.#options = options
    const { http, monotonic, closing, log } = options.host
    for (const { name, jwksUri } of options.clients.values()) {
      const onError = (error: unknown): void => log('warn', 'The keys of a client cannot be read', { client: name, error })
      if (jwksUri !== undefined) this.#keys.set(name, new ClientKeys(jwksUri, { http, monotonic, closing, onError }))
    }
  }

  /** `audiences`: what an assertion may be for, which are the names of this server. */
  async client(form: Form, call: Call, audiences: readonly string[]): Promise<Client> {
    const header = call.request.headers.get('authorization')
    const assertion = form.get('client_assertion')
    const secret = form.get('client_secret')
    const ways = [header ?? undefined, assertion, secret].filter((way) => way !== undefined)
    if (ways.length > 1) throw refused('invalid_request', 'A client proves who it is in one way, and not in several')
    if (ways.length === 0) throw refused('invalid_client', NOTHING)
    const found = assertion === undefined ? this.#bySecret(header, form) : await this.#byAssertion(assertion, { form, audiences })
    if (!('because' in found)) return found
    call.countWrong()
    const { because, isTold, name } = found
    const fields = { address: call.address, ...(name !== undefined && { client: name }), because, ...call.trace.fields }
    this.#options.host.log('info', 'A client was refused', fields)
    throw refused('invalid_client', isTold ? because : WRONG)
  }

  #bySecret(header: string | null, form: Form): Client | Wrong {
    if (header !== null && !/^basic +/i.test(header)) return told(NOT_BASIC)
    const given = header === null ? [{ name: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' }] : basic(header)
    let named: Client | undefined
    for (const { name, secret } of given) {
      const client = this.#options.clients.get(name)
      named ??= client
      // Compares in any case, so that the time does not show which names there are.
      const isRight = isEqual(client?.secret ?? NOBODYS, secret)
      if (client?.secret !== undefined && isRight) return client
    }
    if (!named) return { because: 'There is no client of that name' }
    return { because: named.secret === undefined ? 'The client has keys, and no secret' : 'The secret is wrong', name: named.name }
  }

  async #byAssertion(
    assertion: string,
    { form, audiences }: { readonly form: Form; readonly audiences: readonly string[] },
  ): Promise<Client | Wrong> {
    const { host, leewayMs } = this.#options
    if (form.get('client_assertion_type') !== JWT_BEARER) return told(`The client_assertion_type must be ${JWT_BEARER}`)
    if (assertion.length > MOST_CHARS) return told(`The client assertion has more than ${MOST_CHARS} characters`)
    const { decodeJwt } = await import('jose')
    const claims = claimsIn(() => decodeJwt(assertion))
    if (!claims) return told('The client assertion is not a JWT that can be read')
    const wrong = wrongAssertion(claims, { audiences, now: host.now(), leewayMs })
    if (wrong !== undefined) return told(wrong)
    const client = this.#options.clients.get(claims.sub ?? '')
    if (!client) return { because: 'There is no client of that name' }
    const { name } = client
    const named = form.get('client_id')
    if (named !== undefined && named !== name) return { because: 'The client_id is that of another client', name }
    const unproved = await this.#unproved(client, assertion, audiences)
    if (unproved !== undefined) return { because: unproved, name }
    // RFC 7523 §3: an assertion is used once.
    const { exp = 0, jti = '' } = claims
    const key = storeKey('', 'client-assertion', `${name} ${jti}`)
    const isFirst = await once(host.store, key, exp * 1000 - host.now() + 2 * leewayMs)
    return isFirst ? client : { ...told('The client assertion was used before: each needs a jti of its own'), name }
  }

  /** Why it is not certain that the client has signed this. */
  async #unproved(client: Client, assertion: string, audiences: readonly string[]): Promise<string | undefined> {
    const { createLocalJWKSet, jwtVerify, errors } = await import('jose')
    const { host, leewayMs } = this.#options
    const remote = this.#keys.get(client.name)
    const check = async (keys: JSONWebKeySet): Promise<string | undefined> => {
      const { protectedHeader } = await jwtVerify(assertion, createLocalJWKSet(keys), {
        algorithms: ASSERTION_ALGORITHMS,
        audience: [...audiences],
        issuer: client.name,
        subject: client.name,
        requiredClaims: ['exp', 'jti'],
        clockTolerance: leewayMs / 1000,
        currentDate: new Date(host.now()),
      })
      return ASSERTION_TYPES.includes(protectedHeader.typ) ? undefined : 'The client assertion has the type of something else'
    }
    const keys = remote ? await remote.current() : (client.jwks as JSONWebKeySet | undefined)
    if (!keys) return remote ? 'The keys of the client cannot be read' : 'The client has a secret, and no keys'
    try {
      return await check(keys)
    } catch (thrown) {
      if (!remote || !(thrown instanceof errors.JWKSNoMatchingKey) || !(await remote.refresh())) return reasonOf(thrown)
      const fresh = await remote.current()
      return fresh ? check(fresh).catch(reasonOf) : 'The keys of the client cannot be read'
    }
  }
}

/** What jose says is short, and repeats nothing of the token. */
function reasonOf(thrown: unknown): string {
  return `The client assertion is not right: ${thrown instanceof Error ? thrown.message : 'it cannot be verified'}`
}

/** What the secrets of names that nobody has are compared with. Too short for a secret, so that none is the same. */
const NOBODYS = 'nobody'

/**
 * A name and a secret by HTTP Basic. RFC 6749 §2.3.1 has both form-encoded within, which many clients leave out, so both readings are
 * tried.
 */
function basic(header: string): readonly { readonly name: string; readonly secret: string }[] {
  const bytes = bytesIn(/^basic +([A-Za-z0-9+/=]+) *$/i.exec(header)?.[1] ?? '')
  const text = bytes ? new TextDecoder().decode(bytes) : ''
  const colon = text.indexOf(':')
  if (colon < 0) return []
  const plain = { name: text.slice(0, colon), secret: text.slice(colon + 1) }
  try {
    const decode = (part: string): string => decodeURIComponent(part.replaceAll('+', ' '))
    return [plain, { name: decode(plain.name), secret: decode(plain.secret) }]
  } catch {
    return [plain]
  }
}

function claimsIn(decode: () => JWTPayload): JWTPayload | undefined {
  try {
    return decode()
  } catch {
    return undefined
  }
}
