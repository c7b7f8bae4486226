import { createHash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import canonicalize from 'canonicalize'
import { base64url, CompactSign, exportJWK, generateKeyPair } from 'jose'
import { onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { sseParser } from '../../src/wire/sse-parse.ts'
import { startServer } from '../support/server.ts'

type Members = Readonly<Record<string, unknown>>

interface Sent {
  readonly status: number
  readonly headers: Headers
  readonly body: any // eslint-disable-line
}

export interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** The algorithm that signs; `none` leaves the signature out. */
  readonly alg?: Algorithm | 'none'
  readonly header?: Members
  /** Changes the text of the message after it was signed. */
  readonly tamper?: (text: string) => string
}

type Algorithm = 'ES256' | 'EdDSA' | 'RS256'
type Pair = Awaited<ReturnType<typeof generateKeyPair>>
type Keys = Readonly<Record<Algorithm, Pair>>

async function makeKeys(): Promise<Keys> {
  const [ES256, EdDSA, RS256] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('EdDSA'), generateKeyPair('RS256')])
  return { ES256, EdDSA, RS256 }
}

/** Made once: they are expensive, and no test changes them. */
let made: Promise<Keys> | undefined

/** A company that sends signed messages, with its DID document on loopback, and the server that it sends them to. */
export class Sender {
  readonly url: string
  readonly did: string
  readonly #keys: Keys

  private constructor(url: string, did: string, keys: Keys) {
    this.url = url
    this.did = did
    this.#keys = keys
  }

  static async start(): Promise<Sender> {
    const { url } = await startServer(demo())
    const keys = await (made ??= makeKeys())
    const document = createServer((_, response) => {
      const methods = Object.entries(keys).map(async ([alg, { publicKey }]) => ({
        id: `${did}#${alg}`,
        type: 'JsonWebKey2020',
        controller: did,
        publicKeyJwk: await exportJWK(publicKey),
      }))
      void Promise.all(methods).then((verificationMethod) =>
        response.end(JSON.stringify({ id: did, verificationMethod, assertionMethod: verificationMethod.map(({ id }) => id) })),
      )
    })
    await new Promise<void>((resolve) => document.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void document.close())
    const did = `did:web:127.0.0.1%3A${(document.address() as AddressInfo).port}`
    return new Sender(url, did, keys)
  }

  /** The DID of the server, as its document says. */
  async recipient(): Promise<string> {
    const document = (await (await fetch(`${this.url}/.well-known/did.json`)).json()) as { id: string }
    return document.id
  }

  /** The members of a question to the demo. */
  async question(content: string, more: Members = {}): Promise<Members> {
    return {
      id: `urn:uuid:${randomUUID()}`,
      ts: new Date().toISOString(),
      from: this.did,
      to: [await this.recipient()],
      intent: 'ask',
      body: { type: 'text/plain', content },
      ...more,
    }
  }

  async send(members: Members, { headers = {}, alg = 'ES256', header = {}, tamper = (text) => text }: SendOptions = {}): Promise<Sent> {
    const sig = alg === 'none' ? undefined : await this.#signed(members, { alg, kid: `${this.did}#${alg}`, ...header })
    const response = await fetch(`${this.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/uamp+json;v=1', ...headers },
      body: tamper(JSON.stringify({ ...members, ...(sig !== undefined && { sig }) })),
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  /** What becomes of a question: its stream to the end. */
  async ask(content: string, more: Members = {}): Promise<{ readonly sent: Sent; readonly deltas: readonly Delta[] }> {
    const sent = await this.send(await this.question(content, more))
    return { sent, deltas: await this.read(sent) }
  }

  /** The stream that was opened for a message. */
  async read(sent: Sent, headers: Readonly<Record<string, string>> = {}): Promise<readonly Delta[]> {
    const path = sent.headers.get('location')
    if (path === null) throw new Error(`There is no stream: ${sent.status}`)
    const response = await fetch(this.url + path, { headers: { accept: 'text/event-stream', ...headers } })
    if (response.status !== 200) throw new Error(`${path} is ${response.status}`)
    return [...sseParser()(await response.text())].map(({ id, data }) => ({ ...(JSON.parse(data) as Omit<Delta, 'id'>), id }))
  }

  async #signed(members: Members, header: Members & { readonly alg: Algorithm }): Promise<string> {
    const payload = new TextEncoder().encode(JSON.stringify({ sha256: hashOf(members) }))
    const jws = await new CompactSign(payload).setProtectedHeader(header).sign(this.#keys[header.alg].privateKey)
    return jws.replace(/\.[^.]*\./, '..')
  }
}

export interface Delta {
  readonly id: string | undefined
  readonly delta_seq: number
  readonly stream_id: string
  readonly type: string
  readonly payload?: any // eslint-disable-line
}

/** The hash of a message, as its signature covers it. */
export const hashOf = (members: Members): string =>
  createHash('sha256')
    .update(canonicalize(members) ?? '')
    .digest('hex')

/** A frame of the WebSocket binding. */
export function frame(message: object, length?: number): Buffer {
  const text = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(4)
  head.writeUInt32BE(length ?? text.length)
  return Buffer.concat([head, text])
}

export const decoded = (part: string): unknown => JSON.parse(new TextDecoder().decode(base64url.decode(part)))
