// @ts-check
import { createPublicKey, generateKeyPair, randomUUID, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { promisify } from 'node:util'

const AUDIENCE = 'https://bench.example'
const signed = promisify(sign)
const base64Url = (/** @type {object} */ value) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An identity provider: it publishes a key, and signs access tokens with it. */
export class Issuer {
  #server
  #key

  /** @param {import('node:http').Server} server @param {import('node:crypto').KeyObject} key */
  constructor(server, key) {
    this.#server = server
    this.#key = key
  }

  static async start() {
    const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
    const keys = [{ ...createPublicKey(privateKey).export({ format: 'jwk' }), kid: 'bench', alg: 'RS256', use: 'sig' }]
    const server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys })),
    )
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    return new Issuer(server, privateKey)
  }

  /** As `access.issuers` of a server has it. */
  get settings() {
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address())
    const issuer = `http://127.0.0.1:${port}`
    return { issuer, jwksUri: `${issuer}/jwks.json`, audience: AUDIENCE }
  }

  /** Tokens of one caller, valid for an hour. @param {number} count */
  tokens(count) {
    const iat = Math.floor(Date.now() / 1000)
    const { issuer: iss, audience: aud } = this.settings
    const head = base64Url({ alg: 'RS256', kid: 'bench', typ: 'at+jwt' })
    return Promise.all(
      Array.from({ length: count }, async () => {
        const claims = { iss, aud, sub: 'caller', client_id: 'caller', scope: 'write', iat, exp: iat + 3600, jti: randomUUID() }
        const text = `${head}.${base64Url(claims)}`
        return `${text}.${(await signed('sha256', Buffer.from(text), this.#key)).toString('base64url')}`
      }),
    )
  }

  stop() {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}
