import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { answer } from './answer.ts'
import { fixtureCache } from './fixtures.ts'
import { type Json, isObject, type Refusal, type Vendor, type VendorName } from './vendor.ts'
import { mounts } from './vendors/index.ts'

/** Requests that are remembered; older ones are forgotten. */
const REMEMBERED = 10_000

export interface Seen {
  readonly vendor: VendorName
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The body as JSON; as text when it is none. */
  readonly body: Json
}

/** A scenario (`tools+cut`), or an answer as it is. */
export type Scripted = string | Refusal

export class Upstream {
  readonly requests: Seen[] = []
  /** Connections that were made, answers that began, and answers whose reader went away before their end. */
  connections = 0
  answers = 0
  aborts = 0
  readonly #mounts = mounts()
  readonly #load = fixtureCache()
  readonly #sockets = new Set<Socket>()
  readonly #scripts = new Map<VendorName, Scripted[]>()
  readonly #flaky = new Set<string>()
  readonly #waiting = new Set<() => void>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  #count = 0

  async listen(port = 0): Promise<this> {
    this.#server.on('connection', (socket: Socket) => {
      this.connections++
      this.#sockets.add(socket.setNoDelay(true))
      socket.on('close', () => {
        this.#sockets.delete(socket)
        this.#changed()
      })
      this.#changed()
    })
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Sockets that are open now. */
  get open(): number {
    return this.#sockets.size
  }

  /** The next requests to this vendor get these answers, whatever model they name. */
  script(vendor: VendorName, ...answers: readonly Scripted[]): void {
    this.#scripts.set(vendor, [...(this.#scripts.get(vendor) ?? []), ...answers])
  }

  /** Resolves as soon as it is so: `await upstream.until(() => upstream.aborts === 1)`. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #changed(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined)
    try {
      const text = await readText(request)
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://upstream')
      const found = this.#mounts.find(({ prefix, vendor }) => pathname.startsWith(prefix) && serves(vendor, pathname.slice(prefix.length)))
      if (!found) return void response.writeHead(404, { 'content-type': 'text/plain' }).end(`No vendor lives at ${pathname}`)
      const { vendor, prefix } = found
      const body = parse(text)
      if (request.method === 'POST')
        this.#remember({ vendor: vendor.name, path: pathname, headers: request.headers, body: body ?? { text } })
      this.answers++
      let ours = false
      response.on('close', () => {
        if (!response.writableFinished && !ours) this.aborts++
        this.#changed()
      })
      await answer(response, {
        vendor,
        method: request.method ?? 'GET',
        path: pathname.slice(prefix.length),
        query: searchParams,
        headers: request.headers,
        body,
        id: ++this.#count,
        load: this.#load,
        scripted: request.method === 'POST' ? this.#scripts.get(vendor.name)?.shift() : undefined,
        cut: () => {
          ours = true
          response.destroy()
        },
        isFirst: (key) => !this.#flaky.has(key) && !!this.#flaky.add(key),
      })
    } catch (error) {
      // The client broke off its own request, or a scenario is misspelt.
      if (response.headersSent) response.destroy()
      else response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error))
    }
  }

  #remember(seen: Seen): void {
    this.requests.push(seen)
    if (this.requests.length > REMEMBERED) this.requests.shift()
    this.#changed()
  }
}

const serves = (vendor: Vendor, path: string): boolean => !!vendor.route(path, {}) || vendor.models(path) !== undefined

function parse(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
