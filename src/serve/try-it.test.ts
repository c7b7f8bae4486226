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

test('with a log of the program it prints nothing', async () => {
  expect(await printed({ log: () => undefined })).toBe('')
})
