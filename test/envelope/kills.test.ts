import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startChild } from '../support/child.ts'
import { freePort } from '../support/free-port.ts'
import { chainOf, company, frames, message, pinned, post, signed, streamOf, type Frame, type Members } from './company.ts'

test('what a reader was sent before the server was killed is what it has afterwards', { timeout: 60_000 }, async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-envelope-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const [client, port] = [await company(), await freePort()]
  const program = [join(import.meta.dirname, 'server.mjs'), data, String(port)]
  const start = () => startChild(data, { program, env: { KEYS: JSON.stringify(pinned(client)) } })
  const url = `http://127.0.0.1:${port}`
  for (let kill = 0; kill < 4; kill++) {
    let server = await start()
    const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
    const ask = await signed(client, message(client, did, { delta_window: 1024, body: { type: 'text/plain', content: '/count 5000 1' } }))
    const stream = streamOf(await post(url, ask))
    const raw: string[] = []
    const reading = frames(stream, { raw }).catch(() => undefined)
    await expect.poll(() => raw.length).toBeGreaterThan(20 + kill * 40)
    await server.kill()
    await reading
    // Twice in a row: the second time while it starts.
    const second = start().catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, kill * 60))
    await (await second)?.kill()
    server = await start()
    const rest: string[] = []
    const known = (JSON.parse(raw.at(-1) ?? '{}') as Frame).delta_seq
    await frames(stream, { raw: rest, headers: { 'last-event-id': String(known) } })
    const again: string[] = []
    await frames(stream, { raw: again })
    expect(again).toEqual([...raw, ...rest])
    expect(JSON.parse(again.at(-1) ?? '{}')).toMatchObject({ type: 'error', payload: { code: '5.00' } })
    const closing = (await (await fetch(`${url}/v1/messages/${ask['id'] as string}`)).json()) as Members
    expect(closing).toMatchObject({ intent: 'error', ext: { uamp: { stream_sha256: chainOf(again.slice(0, -1)) } } })
    // The message is not run again.
    const repeated = await post(url, ask)
    expect([repeated.status, streamOf(repeated)]).toEqual([202, stream])
    await server.kill()
  }
})
