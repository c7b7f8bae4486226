import { describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { PNG } from '../../../src/agents/demo/media.ts'
import { mirror, type Mirrored } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'
import { clientOf, collect, user, versions, type OpenAI } from './clients.ts'

/** Half a second of silence. */
const SILENCE = Buffer.alloc(24_000).toString('base64')
const SECOND = 24_000 * 2

interface AudioDelta {
  readonly audio?: { readonly id?: string; readonly data?: string; readonly transcript?: string; readonly expires_at?: number }
}

describe.each(versions)('openai $version', (version) => {
  const connect = async (): Promise<OpenAI> => {
    const { url } = await startServer([demo(), mirror])
    return clientOf(version, url).openai
  }
  /** What the agent was given. */
  const given = async (content: OpenAI.ChatCompletionContentPart[]): Promise<Mirrored> => {
    const openai = await connect()
    const { choices } = await openai.chat.completions.create({ model: 'mirror', messages: [{ role: 'user', content }] })
    return JSON.parse(choices[0]?.message.content ?? '') as Mirrored
  }

  test('images by URL and as data', async () => {
    const { messages } = await given([
      { type: 'text', text: 'Which is which?' },
      { type: 'image_url', image_url: { url: 'https://example.com/cat.png', detail: 'low' } },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    ])
    expect(messages.at(-1)).toMatchObject({
      role: 'user',
      content_items: [
        { type: 'text', text: 'Which is which?' },
        { type: 'image', image: { url: 'https://example.com/cat.png' }, detail: 'low', content_id: expect.any(String) },
        { type: 'image', image: PNG, format: 'png', content_id: expect.any(String) },
      ],
    })
  })

  test('audio', async () => {
    const { messages } = await given([{ type: 'input_audio', input_audio: { data: SILENCE, format: 'wav' } }])
    expect(messages.at(-1)?.content_items).toMatchObject([{ type: 'audio', audio: SILENCE, format: 'wav' }])
  })

  test('files', async () => {
    const file = Buffer.from('a,b\n1,2\n').toString('base64')
    const { messages } = await given([
      { type: 'file', file: { filename: 'table.csv', file_data: `data:text/csv;base64,${file}` } },
      { type: 'file', file: { filename: 'notes.md', file_data: file } },
    ])
    expect(messages.at(-1)?.content_items).toMatchObject([
      { type: 'file', file, filename: 'table.csv', mime_type: 'text/csv' },
      { type: 'file', file, filename: 'notes.md', mime_type: 'text/markdown' },
    ])
  })

  test('what is no image, no audio and no known file is refused with its place', async () => {
    const parts: [part: OpenAI.ChatCompletionContentPart, param: string][] = [
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64,***' } }, 'messages[0].content[0]'],
      [{ type: 'input_audio', input_audio: { data: 'not base64!', format: 'wav' } }, 'messages[0].content[0]'],
      [{ type: 'file', file: { file_id: 'file-1' } }, 'messages[0].content[0]'],
    ]
    const openai = await connect()
    for (const [part, param] of parts) {
      const refused = openai.chat.completions.create({ model: 'mirror', messages: [{ role: 'user', content: [part] }] })
      await expect(refused).rejects.toMatchObject({ status: 400, param: expect.stringContaining(param) })
    }
  })

  test('audio out: whole, as WAV', async () => {
    const openai = await connect()
    const { choices } = await openai.chat.completions.create({
      ...user('/audio 1'),
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'wav' },
    })
    const { message } = choices[0] ?? {}
    expect(message).toMatchObject({
      content: null,
      audio: { id: expect.any(String), transcript: 'A tone of 1 s.', expires_at: expect.any(Number) },
    })
    const wav = Buffer.from(message?.audio?.data ?? '', 'base64')
    expect([wav.toString('latin1', 0, 4), wav.toString('latin1', 8, 12), wav.readUInt32LE(24)]).toEqual(['RIFF', 'WAVE', 24_000])
    expect(wav.length).toBe(44 + SECOND)
  })

  test('audio out: streamed, as bare samples', async () => {
    const openai = await connect()
    const request = {
      ...user('/audio 1'),
      modalities: ['text' as const, 'audio' as const],
      audio: { voice: 'alloy', format: 'pcm16' as const },
    }
    const chunks = await collect(await openai.chat.completions.create({ ...request, stream: true }))
    const audio = chunks.flatMap(({ choices }) => (choices[0]?.delta as AudioDelta | undefined)?.audio ?? [])
    expect(new Set(audio.flatMap(({ id }) => id ?? [])).size).toBe(1)
    expect(audio.map(({ transcript = '' }) => transcript).join('')).toBe('A tone of 1 s.')
    const pieces = audio.flatMap(({ data }) => data ?? []).map((data) => Buffer.from(data, 'base64'))
    expect(pieces.length).toBeGreaterThan(1)
    expect(Buffer.concat(pieces)).toHaveLength(SECOND)
    expect(audio.some(({ expires_at }) => typeof expires_at === 'number')).toBe(true)
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
  })

  test('audio is answered with audio', async () => {
    const openai = await connect()
    const { choices } = await openai.chat.completions.create({
      model: 'demo',
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'pcm16' },
      messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: SILENCE, format: 'wav' } }] }],
    })
    expect(choices[0]?.message.audio?.data.length).toBeGreaterThan(0)
  })

  test('an answer in audio can stand in the history by its id', async () => {
    const openai = await connect()
    const modalities = { modalities: ['text' as const, 'audio' as const], audio: { voice: 'alloy', format: 'pcm16' as const } }
    const first = await openai.chat.completions.create({ ...user('/audio 1'), ...modalities })
    const { choices } = await openai.chat.completions.create({
      model: 'demo',
      messages: [
        { role: 'user', content: '/audio 1' },
        { role: 'assistant', audio: { id: first.choices[0]?.message.audio?.id ?? '' } },
        { role: 'user', content: 'Thanks' },
      ],
    })
    expect(choices[0]?.message.content).toBe('You said: Thanks')
  })
})
