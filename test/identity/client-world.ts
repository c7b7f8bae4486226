import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { bearerToken } from '../../src/auth/bearer.ts'
import { connect, NodeWebSocket, type ConnectOptions, type Session, type SocketLike, type Status } from '../../src/client/node.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Access, Credentials, Denial, Principal } from '../../src/core/ports/access.ts'
import { startProxy } from '../client/proxy.ts'
import type { Heard } from '../support/wire.ts'

export const TRANSPORTS = ['websocket', 'sse'] as const
export type Kind = (typeof TRANSPORTS)[number]

const QUICK = { minMs: 5, maxMs: 40 }

interface Life {
  /** Milliseconds from when it is first shown until the server takes it no longer: a slow machine shows none too late. Default: for ever. */
  readonly endsIn?: number
  /** Milliseconds until it ends by what it says of itself. Default: it does not say. */
  readonly saysIn?: number
}

/** Tokens that end. What a token says of itself, and when the server finds it too old, are two things here, so that a test can tell which counted. */
export class EndingTokens implements Access {
  readonly schemes = ['Bearer'] as const
  readonly graceSeconds: number
  /** Tokens that a client has shown, each once, in their order. */
  readonly shown: string[] = []
  /** Called with each of these, before the client is answered. */
  onShown: () => void = () => undefined
  readonly #known = new Map<string, { readonly principal: Principal; readonly endsIn: number | undefined }>()
  readonly #ends = new Map<string, number>()

  constructor(graceSeconds = 60) {
    this.graceSeconds = graceSeconds
  }

  give(id: string, { endsIn, saysIn }: Life = {}): string {
    const claims = saysIn === undefined ? {} : { exp: (Date.now() + saysIn) / 1000 }
    const token = `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${crypto.randomUUID()}`
    this.#known.set(token, { principal: { tenant: 't', id, scopes: ['call'], credential: token }, endsIn })
    return token
  }

  hasEnded(token = ''): boolean {
    return (this.#ends.get(token) ?? Infinity) <= Date.now()
  }

  async authenticate(credentials: Credentials): Promise<Principal | Denial | undefined> {
    const token = bearerToken(credentials)
    if (token === undefined) return { denied: 'missing', message: 'No token' }
    const { principal, endsIn } = this.#known.get(token) ?? {}
    if (!this.shown.includes(token)) {
      this.shown.push(token)
      this.onShown()
      if (endsIn !== undefined) this.#ends.set(token, Date.now() + endsIn)
    }
    if (this.hasEnded(token)) return { denied: 'expired', message: 'The token has expired' }
    return principal && { ...principal, expiresAt: this.#ends.get(token) }
  }

  authorize({ scopes }: Principal, action: string): boolean {
    return scopes.includes(action)
  }
}

/** An agent that counts until it is told that it is enough. Tells apart who asks by what they say. */
export function counting() {
  const said = new Map<string, number>()
  const state = { enough: false }
  onTestFinished(() => void (state.enough = true))
  const agent = defineAgent('counting', async function* ({ messages }) {
    const who = messages.at(-1)?.content ?? ''
    for (let n = 1; ; n++) {
      said.set(who, n)
      yield text(`${n} `)
      if (state.enough) return
      await sleep(3)
    }
  })
  /** What somebody has to have heard: every number, once and in order. */
  const all = (who: string): number[] => Array.from({ length: said.get(who) ?? 0 }, (_, n) => n + 1)
  return { agent, all, enough: () => void (state.enough = true) }
}

function numbersIn(said: string): number[] {
  return said.trim().split(' ').map(Number)
}

/** An answer as it comes. */
export function asked(session: Session, who: string) {
  let said = ''
  const whole = (async () => {
    for await (const event of session.ask(who)) if (event.type === 'response.delta' && event.delta.type === 'text') said += event.delta.text
    return numbersIn(said)
  })()
  // Whoever does not wait for it at once is told later.
  whole.catch(() => undefined)
  return { whole, begun: () => expect.poll(() => said).not.toBe('') }
}

/** A client behind a network that can be cut. Its sockets are kept, so that others can be guests on them. */
export async function client(port: number, options: ConnectOptions) {
  const proxy = await startProxy(port)
  const sockets: SocketLike[] = []
  const heard: Heard[] = []
  const WebSocket = class extends NodeWebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      sockets.push(this)
      this.addEventListener('message', ({ data }) => heard.push(JSON.parse(String(data)) as Heard))
    }
  }
  const statuses: Status[] = []
  const made = connect(proxy.url, {
    WebSocket,
    onStatus: (status) => statuses.push(status),
    ...options,
    reconnect: { ...QUICK, ...options.reconnect },
  })
  onTestFinished(async () => {
    made.close()
    await proxy.close()
  })
  return { client: made, proxy, sockets, heard, statuses }
}

type Behind = Pick<Awaited<ReturnType<typeof client>>, 'sockets' | 'heard'>

/** A session of somebody else on the socket of a client, with a token of its own. */
export async function guest({ sockets, heard }: Behind, token: string, agent: string) {
  const [socket] = sockets
  let count = 0
  const send = (event: object): string => {
    const event_id = `guest-${token.slice(-8)}-${++count}`
    socket?.send(JSON.stringify({ ...event, event_id }))
    return event_id
  }
  const find = async (fits: (event: Heard) => boolean): Promise<Heard> => {
    await expect.poll(() => heard.some(fits), { timeout: 10_000 }).toBe(true)
    return heard.find(fits) as Heard
  }
  const request = send({ type: 'session.create', uamp_version: '1.0', agent, token, session: { modalities: ['text'] } })
  const { session_id: id } = await find((event) => event['extensions']?.uamp?.request === request)
  const mine = (): Heard[] => heard.filter((event) => event['session_id'] === id)
  return {
    mine,
    ask(who: string): void {
      send({ type: 'input.text', text: who, session_id: id })
      send({ type: 'response.create', session_id: id })
    },
    hears: (type: string) => find((event) => event['session_id'] === id && event.type === type),
    numbers: () =>
      numbersIn(
        mine()
          .map((event) => (event.type === 'response.delta' ? String(event['delta'].text) : ''))
          .join(''),
      ),
  }
}
