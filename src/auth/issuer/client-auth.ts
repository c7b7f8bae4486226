import type { JSONWebKeySet, JWTPayload } from 'jose'
import { storeKey } from '../../core/basics/store-key.ts'
import { once } from '../../core/basics/once.ts'
import type { Call, Host } from '../../core/ports/transport.ts'
import { isEqual } from '../../core/secrets/is-equal.ts'
import { bytesIn } from '../../protocol/base64.ts'
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
/** The longest life of an assertion: so long it is remembered. */
const LONGEST_SECONDS = 3600
const ID_CHARS = 256

const WRONG = 'The client is not known, or has not proved to be it'

export interface ClientAuthOptions {
  readonly host: Host
  readonly clients: ReadonlyMap<string, Client>
  readonly leewayMs: number
}

interface Shown {
  readonly client: Client | undefined
  readonly isProved: boolean
}

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
    const { client, isProved } =
      assertion === undefined ? this.#bySecret(header, form) : await this.#byAssertion(assertion, { form, audiences })
    if (client && isProved) return client
    if (ways.length > 0) call.countWrong()
    throw refused('invalid_client', WRONG)
  }

  #bySecret(header: string | null, form: Form): Shown {
    const given = header === null ? [{ name: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' }] : basic(header)
    for (const { name, secret } of given) {
      const client = this.#options.clients.get(name)
      // Compares in any case, so that the time does not show which names there are.
      const isRight = isEqual(client?.secret ?? NOBODYS, secret)
      if (client?.secret !== undefined && isRight) return { client, isProved: true }
    }
    return { client: undefined, isProved: false }
  }

  async #byAssertion(
    assertion: string,
    { form, audiences }: { readonly form: Form; readonly audiences: readonly string[] },
  ): Promise<Shown> {
    if (form.get('client_assertion_type') !== JWT_BEARER || assertion.length > MOST_CHARS) return { client: undefined, isProved: false }
    const { decodeJwt } = await import('jose')
    const name = subjectOf(() => decodeJwt(assertion))
    const client = this.#options.clients.get(name ?? '')
    const named = form.get('client_id')
    if (!client || (named !== undefined && named !== client.name)) return { client: undefined, isProved: false }
    const claims = await this.#verified(client, assertion, audiences)
    return { client, isProved: claims !== undefined && (await this.#isFirst(client, claims)) }
  }

  async #verified(client: Client, assertion: string, audiences: readonly string[]): Promise<JWTPayload | undefined> {
    const { createLocalJWKSet, jwtVerify, errors } = await import('jose')
    const { host, leewayMs } = this.#options
    const remote = this.#keys.get(client.name)
    const check = async (keys: JSONWebKeySet): Promise<JWTPayload | undefined> => {
      const { payload, protectedHeader } = await jwtVerify(assertion, createLocalJWKSet(keys), {
        algorithms: ASSERTION_ALGORITHMS,
        audience: [...audiences],
        issuer: client.name,
        subject: client.name,
        requiredClaims: ['exp', 'jti'],
        clockTolerance: leewayMs / 1000,
        currentDate: new Date(host.now()),
      })
      return ASSERTION_TYPES.includes(protectedHeader.typ) ? payload : undefined
    }
    const keys = remote ? await remote.current() : (client.jwks as JSONWebKeySet | undefined)
    if (!keys) return undefined
    try {
      return await check(keys)
    } catch (thrown) {
      if (!remote || !(thrown instanceof errors.JWKSNoMatchingKey) || !(await remote.refresh())) return undefined
      const fresh = await remote.current()
      return fresh && check(fresh).catch(() => undefined)
    }
  }

  /** RFC 7523 §3: an assertion is used once. */
  async #isFirst({ name }: Client, { exp = 0, jti = '' }: JWTPayload): Promise<boolean> {
    const { host, leewayMs } = this.#options
    const leftMs = exp * 1000 - host.now()
    if (typeof jti !== 'string' || jti === '' || jti.length > ID_CHARS || leftMs > LONGEST_SECONDS * 1000 + leewayMs) return false
    return once(host.store, storeKey('', 'client-assertion', `${name} ${jti}`), leftMs + 2 * leewayMs)
  }
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

function subjectOf(decode: () => JWTPayload): string | undefined {
  try {
    return decode().sub
  } catch {
    return undefined
  }
}
