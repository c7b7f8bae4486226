/** What UAMP events asks for and is not built: each test is the behaviour that its requirement asks for. */
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { expectedFailure, verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard, type Wire } from '../support/wire.ts'

/** What comes of saying something to the demo, and of events sent beside it. */
async function heardAfter(text: string, create: object = {}, before: readonly object[] = []): Promise<Heard[]> {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  const session_id = await wire.open(create)
  for (const event of before) void wire.send({ ...event, session_id })
  await say(wire, text)
  return [...wire.heard]
}

const types = (events: readonly Heard[]): string[] => events.map(({ type }) => type)

verifies('uamp:voice:invite', 'an invitation to talk is declined while voice is not there', async () => {
  expect(await heardAfter('hi', {}, [{ type: 'voice.invite' }])).toContainEqual(
    expect.objectContaining({ type: 'voice.decline', reason: 'unsupported' }),
  )
})
expectedFailure('uamp:voice:answer', 'an offer is answered', async () => {
  const events = await heardAfter('hi', {}, [{ type: 'voice.invite', offer: { type: 'offer', sdp: 'v=0' } }])
  expect(events.find(({ type }) => type === 'voice.accept')?.['answer']).toMatchObject({ type: 'answer', sdp: expect.any(String) })
})
expectedFailure('uamp:voice:end', 'a call that is ended tells how long it was', async () => {
  const events = await heardAfter('hi', {}, [{ type: 'voice.invite' }, { type: 'voice.end' }])
  expect(events.find(({ type }) => type === 'voice.end')?.['duration_ms']).toBeGreaterThanOrEqual(0)
})
expectedFailure('uamp:voice:turn-detection', 'the end of speech starts the response', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  await wire.open({ session: { modalities: ['audio'], turn_detection: { type: 'server_vad', silence_duration_ms: 20 } } })
  await wire.send({ type: 'input.audio', audio: Buffer.alloc(48_000).toString('base64'), format: 'pcm16' })
  await wire.send({ type: 'ping' })
  await wire.next('pong')
  expect(types(wire.heard)).toContain('response.created')
})
expectedFailure('uamp:voice:formats', 'sound comes in the format that the session asks for', async () => {
  const events = await heardAfter('/audio 0.1', { session: { modalities: ['audio'], output_audio_format: 'g711_ulaw' } })
  expect(events.find(({ type }) => type === 'audio.delta')?.['format']).toBe('g711_ulaw')
})

/** Two in one chat, of whom one has said something. What the other has heard by then. */
async function inOneChat(act: (alice: Wire, bob: Wire) => Promise<void>): Promise<readonly Heard[]> {
  const { url } = await startServer(demo())
  const [alice, bob] = [await overWebSocket(url), await overWebSocket(url)]
  await alice.open({ chat: 'room' })
  await bob.open({ chat: 'room' })
  await act(alice, bob)
  // Whatever bob is to be told comes before the answer to this.
  await say(bob, 'hello')
  return bob.heard
}

expectedFailure('uamp:presence:join', 'who leaves a chat is told of to the others', async () => {
  const heard = await inOneChat(async (alice) => void (await alice.send({ type: 'session.end' })))
  expect(types(heard)).toContain('presence.offline')
})
expectedFailure('uamp:presence:typing', 'who types is told of to the others', async () => {
  const heard = await inOneChat(async (alice) => void (await alice.send({ type: 'input.typing', is_typing: true, chat_id: 'room' })))
  expect(heard).toContainEqual(expect.objectContaining({ type: 'presence.typing', chat_id: 'room', is_typing: true }))
})
expectedFailure('uamp:presence:online', 'who comes is told of to the others', async () => {
  expect(types(await inOneChat(async () => undefined))).toContain('presence.online')
})
expectedFailure('uamp:presence:message-created', 'what one says reaches the other', async () => {
  const heard = await inOneChat(async (alice) => void (await say(alice, 'good morning')))
  expect(JSON.stringify(heard.filter(({ type }) => type === 'message.created'))).toContain('good morning')
})
expectedFailure('uamp:presence:message-read', 'a receipt reaches the other', async () => {
  const heard = await inOneChat(async (alice) => void (await alice.send({ type: 'message.read', chat_id: 'room', message_id: 'm1' })))
  expect(heard).toContainEqual(expect.objectContaining({ type: 'message.read', message_id: 'm1' }))
})

/** The content id of an image that the demo made, and the events of what is said after it. */
async function afterImage(next: (contentId: string) => string): Promise<{ readonly contentId: string; readonly heard: readonly Heard[] }> {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  await wire.open()
  const image = (await say(wire, '/image')).find(({ type }) => type === 'response.delta')
  const contentId = image?.['delta'].content_id as string
  return { contentId, heard: await say(wire, next(contentId)) }
}

expectedFailure('uamp:delegation:attachments', 'an image is handed on by its id', async () => {
  const { heard } = await afterImage((id) => `/delegate demo /history ${id}`)
  expect(textOf(heard)).toContain('image')
})
expectedFailure('uamp:delegation:content-ids', 'the image has the same id there', async () => {
  const { contentId, heard } = await afterImage((id) => `/delegate demo /history ${id}`)
  expect(textOf(heard)).toContain(contentId)
})
expectedFailure('uamp:delegation:thinking', 'what a delegate thinks is told as progress of the call', async () => {
  const events = await heardAfter('/delegate demo /think of a number')
  expect(events.some(({ type, delta }) => type === 'response.delta' && delta.type === 'tool_progress')).toBe(true)
})
expectedFailure('uamp:delegation:thinking-switch', 'what a delegate thinks stays there where that is switched off', async () => {
  const session = { modalities: ['text'], extensions: { uamp: { delegate_thinking: false } } }
  const events = await heardAfter('/delegate demo /think of a number', { session })
  expect(events.at(-1)?.type).toBe('response.done')
  expect(events.some(({ type, delta }) => type === 'response.delta' && delta.type === 'tool_progress')).toBe(false)
})
