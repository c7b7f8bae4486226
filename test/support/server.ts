import { inspect } from 'node:util'
import { onTestFinished } from 'vitest'
import { serve, type ServeOptions } from '../../src/serve/index.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { Store } from '../../src/core/ports/store.ts'
import type { Transport } from '../../src/core/ports/transport.ts'
import { dial } from './dial.ts'
import { paymentSecretIn, paymentSecretsUnder } from './payment-secrets.js'

/** A whole server on a free port, gone when the test is. */
export async function startServer(agents: AgentPort | readonly AgentPort[], options: Partial<ServeOptions> = {}) {
  const logged: { level: string; message: string; fields?: Readonly<Record<string, unknown>> | undefined }[] = []
  let store: Store | undefined
  const watch: Transport = { name: 'watch', serves: 'all', routes: (host) => ((store = host.store), []) }
  const server = await serve(agents, {
    port: 0,
    data: 'memory',
    log: (level, message, fields) => void logged.push({ level, message, fields }),
    ...(dial.tls && { tls: dial.tls }),
    ...options,
    transports: [...(options.transports ?? []), watch],
  })
  onTestFinished(async () => {
    const places = await placesOfSecrets({ url: server.url, store, logged })
    await server.close({ graceMs: 0 })
    const { data = 'memory' } = options
    const files = data === 'memory' ? [] : paymentSecretsUnder(data)
    if (places.length + files.length > 0) throw new Error(`Payments must leave nothing behind: ${[...places, ...files].join('; ')}`)
  })
  return { ...server, logged }
}

/** Stores of tests that are about size are looked at no further. */
const MOST_BYTES = 16 * 1024 * 1024

/** Where a server has kept a token or a proof that somebody paid with. */
export async function placesOfSecrets({
  url,
  store,
  logged,
}: {
  readonly url: string
  readonly store: Store | undefined
  readonly logged: readonly unknown[]
}): Promise<string[]> {
  const places: string[] = []
  const look = (place: string, text: string): void => {
    const kind = paymentSecretIn(text)
    if (kind !== undefined) places.push(`${kind} in ${place}`)
  }
  for (const line of logged) look('the log', inspect(line, { depth: 12, maxStringLength: 100_000 }))
  // A test may have closed it, or let nobody in.
  const metrics = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
  look('the metrics', (await metrics?.text().catch(() => '')) ?? '')
  if (!store) return places
  try {
    let left = MOST_BYTES
    for await (const { type, key, bytes } of store.scan()) {
      if ((left -= bytes) < 0) break
      if (type === 'record') look(`the record ${key}`, JSON.stringify((await store.get(key))?.value ?? null))
      else for await (const { text } of store.read(key)) look(`the stream ${key}`, text)
    }
  } catch {
    // It was closed: its files are still looked at.
  }
  return places
}

/** What a server says that it holds in memory. */
export async function heldBytes(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^uamp_held_bytes (\d+)/m.exec(text)?.[1])
}
