import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Asked {
  readonly path: string
  readonly body: Record<string, unknown>
  readonly authorization: string | undefined
}

type Answer = { readonly status?: number; readonly body?: unknown; readonly raw?: string } | 'cut' | undefined

/** A ledger of somebody else, as it is on the wire: one token with ten dollars. `meddle` answers instead of it. */
export async function otherLedger(meddle: (asked: Asked) => Answer = () => undefined) {
  const heard: Asked[] = []
  const locks = new Map<string, number>()
  const settled = new Map<string, string>()
  const money = { left: 10, earned: 0 }

  function answerTo({ path, body }: Asked): { status?: number; body: unknown } {
    const amount = Number(body['amount'] ?? 0)
    if (path.endsWith('/verify'))
      return { body: { valid: body['token'] === TOKEN, balance: money.left.toFixed(2), reason: 'token_invalid' } }
    if (path.endsWith('/lock')) {
      if (amount > money.left) return { status: 402, body: { error: { code: 'insufficient_balance', message: `no money for ${TOKEN}` } } }
      money.left -= amount
      const lockId = `lock-${locks.size + 1}`
      locks.set(lockId, amount)
      return { body: { lockId, lockedAmountDollars: amount } }
    }
    if (path.includes('/lock/')) {
      const lockId = path.slice(path.lastIndexOf('/') + 1)
      if (amount > money.left) return { status: 402, body: { error: 'insufficient' } }
      money.left -= amount
      locks.set(lockId, (locks.get(lockId) ?? 0) + amount)
      return { body: { lockId, lockedAmountDollars: locks.get(lockId) } }
    }
    const [lockId, key] = [String(body['lockId']), String(body['idempotencyKey'])]
    const known = settled.get(key)
    if (known !== undefined) return { body: JSON.parse(known) as unknown }
    const held = locks.get(lockId)
    if (held === undefined) return { status: 404, body: { error: 'no lock' } }
    locks.delete(lockId)
    money.earned += amount
    money.left += held - amount
    const answer = { success: true, charged: body['amount'], remaining: '0.00' }
    settled.set(key, JSON.stringify(answer))
    return { body: answer }
  }

  const server = createServer((request, response) => {
    void read(request).then((text) => {
      const asked = {
        path: request.url ?? '',
        body: JSON.parse(text) as Record<string, unknown>,
        authorization: request.headers.authorization,
      }
      heard.push(asked)
      const meddled = meddle(asked)
      if (meddled === 'cut') return void request.socket.destroy()
      const { status = 200, ...said } = meddled ?? answerTo(asked)
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end('raw' in said && said.raw !== undefined ? said.raw : JSON.stringify(said.body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const place = `127.0.0.1:${port}`
  return {
    heard,
    money,
    locks,
    /** Does what it was asked, as if the answer to it was lost. */
    perform: answerTo,
    options: {
      payments: { platform: { url: `http://${place}/api/payments`, token: 'secret-of-the-seller' } },
      outbound: { allow: [place] },
    },
  }
}

export const TOKEN = 'token-of-another-ledger-0123456789'

async function read(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += String(piece)
  return text
}
