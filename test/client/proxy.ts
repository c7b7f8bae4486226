import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A bad network: a TCP proxy on loopback whose connections can be cut, and whose bytes can be lost. */
export class Proxy {
  /** What becomes of new connections: passed on, cut at once, or cut when they ask for a WebSocket. */
  door: 'open' | 'shut' | 'no-upgrade' = 'open'
  /** Whether bytes of each direction are passed on or lost. */
  upstream: 'pass' | 'lose' = 'pass'
  downstream: 'pass' | 'lose' = 'pass'
  /** Connections since the beginning. */
  accepted = 0
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  readonly #server = createServer((client) => this.#accept(client))
  readonly #target: number

  constructor(target: number) {
    this.#target = target
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  /** Resolves when somebody connects. */
  nextConnection(): Promise<void> {
    return new Promise((resolve) => this.#server.once('connection', () => resolve()))
  }

  /** Destroys every connection. */
  cut(): void {
    for (const [client] of this.#pairs) client.destroy()
  }

  close(): Promise<void> {
    this.door = 'shut'
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #accept(client: Socket): void {
    if (this.door === 'shut') return void client.destroy()
    this.accepted++
    const target = connect(this.#target, '127.0.0.1')
    const pair = [client, target] as const
    this.#pairs.add(pair)
    const end = (): void => {
      client.destroy()
      target.destroy()
      this.#pairs.delete(pair)
    }
    for (const socket of pair) socket.on('error', end).on('close', end).setNoDelay(true)
    client.on('data', (bytes) => {
      if (this.door === 'no-upgrade' && /^upgrade: *websocket/im.test(bytes.toString('latin1'))) end()
      else if (this.upstream === 'pass') forward(bytes, client, target)
    })
    target.on('data', (bytes) => this.downstream === 'pass' && forward(bytes, target, client))
  }
}

export async function startProxy(port: number): Promise<Proxy> {
  const proxy = new Proxy(port)
  await proxy.listen()
  return proxy
}

function forward(bytes: Buffer, from: Socket, to: Socket): void {
  if (to.destroyed || to.write(bytes)) return
  from.pause()
  to.once('drain', () => from.resume())
}
