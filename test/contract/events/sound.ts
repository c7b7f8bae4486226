import { describe, expect } from 'vitest'
import { scripted } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'
import { isEnd, say } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect } from '../../support/wire.ts'

const silence = (bytes: number): string => Buffer.alloc(bytes).toString('base64')

/** The seconds of sound in `usage`, in either binding. */
export function soundContract(binding: string, connect: Connect): void {
  describe(`sound over ${binding}`, () => {
    verifies('uamp:response:usage-audio', 'usage tells the seconds of sound that went in and out', async () => {
      const piece = { type: 'audio.delta' as const, audio: silence(36_000), format: 'pcm16' }
      const { url } = await startServer(scripted([piece, piece, { type: 'audio.done' }]))
      const wire = await connect(url)
      await wire.open()
      await wire.send({ type: 'input.audio', audio: silence(16_000), format: 'g711_ulaw', is_final: true })
      await wire.send({ type: 'response.create' })
      const { response } = await wire.next(isEnd)
      expect(response.usage.audio).toEqual({ input_seconds: 2, output_seconds: 1.5 })
    })

    verifies('uamp:response:usage-audio', 'what the provider said counts, and without sound there is nothing to tell', async () => {
      const said = { type: 'usage.delta' as const, delta: { output_tokens: 3, audio: { output_seconds: 9 } } }
      const piece = { type: 'audio.delta' as const, audio: silence(48_000), format: 'pcm16' }
      const { url } = await startServer(scripted([piece, said]))
      const wire = await connect(url)
      await wire.open()
      expect((await say(wire, 'go')).at(-1)?.['response'].usage.audio).toEqual({ output_seconds: 9 })
      const { url: quiet } = await startServer(scripted([{ type: 'usage.delta', delta: { output_tokens: 3 } }]))
      const other = await connect(quiet)
      await other.open()
      expect((await say(other, 'go')).at(-1)?.['response'].usage).toEqual({ output_tokens: 3 })
    })
  })
}
