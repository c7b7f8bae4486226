import { expect, onTestFinished, test, vi } from 'vitest'
import { demo } from '../agents/demo/index.ts'
import { serve, type ServeOptions } from './index.ts'

/** What `serve` prints. */
async function printed(options: ServeOptions): Promise<string> {
  let text = ''
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => Boolean((text += String(chunk))))
  const server = await serve(demo(), { port: 0, data: 'memory', ...options }).finally(() => write.mockRestore())
  onTestFinished(() => server.close({ graceMs: 0 }))
  return text.replaceAll(String(server.port), 'PORT')
}

test('serve says where it is, and what to type', async () => {
  const text = await printed({})
  expect(text).toContain('Serving demo at http://127.0.0.1:PORT\n')
  expect(text).toContain(`Try it: curl -N 127.0.0.1:PORT/events -H 'accept: text/event-stream' -d '[`)
  expect(await printed({ prefix: '/ai' })).toContain('curl -N 127.0.0.1:PORT/ai/events')
})

test('it does not print secrets', async () => {
  const text = await printed({ tokens: { alice: 'wonderland-7b1f9c04' } })
  expect(text).toContain(`-H 'authorization: Bearer <secret of alice>'`)
  expect(text).not.toContain('wonderland')
})

test('who has no secret here needs a token that somebody issues', async () => {
  const text = await printed({ access: { clients: { shop: { secret: 'wonderland-7b1f9c04' } } } })
  expect(text).toContain(`-H 'authorization: Bearer <access token>'`)
  expect(text).not.toContain('wonderland')
})

test('a server that does not know its own URL says so at once, if its tokens need it', async () => {
  const access = { clients: { shop: { secret: 'wonderland-7b1f9c04' } } }
  const warned = async (options: ServeOptions): Promise<string[]> => {
    const lines: string[] = []
    const log: ServeOptions['log'] = (level, message) => void (level === 'warn' && lines.push(message))
    const server = await serve(demo(), { port: 0, data: 'memory', trustProxy: ['127.0.0.1'], log, ...options })
    onTestFinished(() => server.close({ graceMs: 0 }))
    return lines
  }
  expect(await warned({ access })).toEqual([expect.stringMatching(/does not know its own URL.*set publicUrl/)])
  expect(await warned({ access, publicUrl: 'https://agents.example' })).toEqual([])
  expect(await warned({ access: { issuers: [{ issuer: 'https://login.example', audience: 'api' }] } })).toEqual([])
})

test('with a log of the program it prints nothing', async () => {
  expect(await printed({ log: () => undefined })).toBe('')
})
