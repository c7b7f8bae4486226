import { expect } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'
import { say } from './support/talk.ts'
import { expectedFailure, verifies } from './support/verifies.ts'
import { overWebSocket, type Heard } from './support/wire.ts'

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

expectedFailure(['uamp:payment:required', 'uamp:payment:submit'], 'an agent asks to be paid', async () => {
  expect(types(await heardAfter('/pay 1'))).toContain('payment.required')
})
expectedFailure(['uamp:payment:accepted', 'uamp:payment:balance'], 'a payment is accepted, and the balance told', async () => {
  expect(types(await heardAfter('/pay 1', { payment_token: 'tok' }))).toEqual(
    expect.arrayContaining(['payment.accepted', 'payment.balance']),
  )
})
expectedFailure(['uamp:payment:error-codes', 'uamp:payment:retry'], 'a bad payment is refused with its code', async () => {
  expect(types(await heardAfter('/pay 1', { payment_token: 'bad' }))).toContain('payment.error')
})
expectedFailure(
  ['uamp:payment:session-token', 'uamp:payment:update-token', 'uamp:payment:input-token'],
  'a token sent ahead pays',
  async () => {
    const events = await heardAfter('/pay 1', { payment_token: 'tok' }, [{ type: 'session.update', payment_token: 'tok2' }])
    expect(types(events)).toContain('payment.accepted')
  },
)
verifies('uamp:voice:invite', 'an invitation to talk is declined while voice is not there', async () => {
  expect(await heardAfter('hi', {}, [{ type: 'voice.invite' }])).toContainEqual(
    expect.objectContaining({ type: 'voice.decline', reason: 'unsupported' }),
  )
})
expectedFailure(['uamp:voice:answer', 'uamp:voice:end'], 'an offer is answered', async () => {
  expect(types(await heardAfter('hi', {}, [{ type: 'voice.invite', offer: { type: 'offer', sdp: 'v=0' } }]))).toContain('voice.accept')
})
expectedFailure(['uamp:voice:turn-detection', 'uamp:voice:formats'], 'the end of speech starts the response', async () => {
  const session = { modalities: ['audio'], turn_detection: { type: 'server_vad' }, output_audio_format: 'g711_ulaw' }
  const events = await heardAfter('/audio 0.1', { session })
  expect(events.find(({ type }) => type === 'audio.delta')?.['format']).toBe('g711_ulaw')
})
expectedFailure(
  ['uamp:presence:join', 'uamp:presence:typing', 'uamp:presence:online', 'uamp:presence:message-created', 'uamp:presence:message-read'],
  'a chat has others in it',
  async () => {
    const { url } = await startServer(demo())
    const [alice, bob] = [await overWebSocket(url), await overWebSocket(url)]
    await alice.open({ chat: 'room' })
    await bob.open({ chat: 'room' })
    await alice.send({ type: 'input.typing', is_typing: true, chat_id: 'room' })
    await say(alice, 'hello')
    await say(bob, 'hello')
    expect(types(bob.heard)).toEqual(expect.arrayContaining(['presence.online', 'presence.typing', 'message.created']))
  },
)
expectedFailure(
  ['uamp:delegation:attachments', 'uamp:delegation:content-ids', 'uamp:delegation:thinking', 'uamp:delegation:thinking-switch'],
  'one agent hands work to another',
  async () => {
    expect((await heardAfter('/delegate demo hello')).at(-1)?.type).toBe('response.done')
  },
)
expectedFailure(['uamp:signing:signature', 'uamp:signing:claims'], 'a response is signed', async () => {
  expect((await heardAfter('hello')).find(({ type }) => type === 'response.done')).toHaveProperty('signature')
})
