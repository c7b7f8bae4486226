import { Client, overHttp, overSocket, type Connect, type Heard } from '../../../acp/wire.ts'
import type { Seeing } from '../seen.ts'
import { RESULT } from '../shapes.ts'
import { AGAIN, answers, cancelling, ERRORS, PAYMENTS, SPEECH, WHOLE, type Reading, type Transport } from '../transport.ts'

/** The tool of an editor: its files. */
const FILES = 'read_text_file'

const over = (name: string, connect: (url: string) => Connect): Transport => ({
  name,
  limits: [
    { why: 'prompts are always answered by updates', modes: WHOLE },
    { why: 'a load tells everything, from the beginning', modes: ['resumed'] },
    {
      why: 'a load tells what was said, and neither how it ended nor what it cost',
      modes: AGAIN,
      sees: () => ({ end: 'loaded', usage: 0 }),
    },
    {
      why: 'a load does not tell what was asked and answered',
      shapes: ['a question for approval', ...PAYMENTS],
      modes: AGAIN,
      sees: () => ({ questions: [] }),
    },
    { why: 'the error of a prompt has no usage', shapes: ERRORS, sees: () => ({ usage: 0 }) },
    { why: 'ACP has no streamed sound', shapes: SPEECH, sees: () => ({ sound: 0 }) },
    { why: 'a load has all of the sound in one piece', shapes: SPEECH, modes: AGAIN, sees: () => ({ media: 1 }) },
  ],
  talk(stage) {
    let session = ''
    return { over: live(), again }

    async function live(): Promise<void> {
      const { seeing } = stage
      const client = await open(stage, connect, answers(stage))
      session = await client.open()
      const cancelled = cancelling(stage, () => client.send({ method: 'session/cancel', params: { sessionId: session } }))
      for (let payment = {}; ;) {
        const { result, error } = await client.say(session, stage.prompt, payment)
        if (error?.code === -32402 && seeing.ask('payment', 'payment.required') && answers(stage)) {
          payment = { payment_token: stage.coin }
          continue
        }
        seeing.use(result?._meta?.uamp?.usage?.output_tokens)
        seeing.end(error ? `error ${error.data.code}` : result.stopReason === 'end_turn' ? 'done' : result.stopReason)
        return cancelled
      }
    }

    async function again(reading: Reading): Promise<void> {
      const client = await open(reading, connect, false)
      const { error } = await client.ask('session/load', { sessionId: session, cwd: '/project', mcpServers: [] })
      reading.seeing.end(error ? `error ${error.data?.code}` : 'loaded')
    }
  },
})

/** A client that sees each message as it comes. */
async function open(
  { url, seeing, after }: Omit<Reading, 'mode'>,
  connect: (url: string) => Connect,
  isAnswering: boolean,
): Promise<Client> {
  const tapped: Connect = (heard) =>
    connect(url)((text) => {
      const { method, params } = JSON.parse(text) as Heard
      if (method === 'session/update') take(seeing, params.update)
      heard(text)
    })
  const client = await Client.connect(tapped, {
    'fs/read_text_file': () => (isAnswering ? { content: RESULT } : undefined),
    'session/request_permission': ({ toolCall }) => {
      seeing.ask(toolCall.toolCallId, 'x.approval.request')
      return isAnswering ? { outcome: { outcome: 'selected', optionId: 'allow' } } : undefined
    },
  })
  after(() => client.close())
  await client.initialize({ fs: { readTextFile: true, writeTextFile: false } })
  return client
}

function take(seeing: Seeing, update: Heard): void {
  const { toolCallId: id, content, name, status, rawInput, rawOutput } = update
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return content.type === 'text' ? seeing.say(content.text) : seeing.show()
    case 'agent_thought_chunk':
      return seeing.think(content.text)
    case 'tool_call':
      if (name === FILES) seeing.ask(id, 'tool.call')
      else seeing.call(id, { name })
      return
    case 'tool_call_update':
      if (rawInput !== undefined) seeing.call(id, { arguments: JSON.stringify(rawInput) })
      if (status === 'completed' && rawOutput !== undefined) seeing.result(id, rawOutput)
      return
    default:
  }
}

export const acpWebSocket = over('ACP, WebSocket', overSocket)
export const acpHttp = over('ACP, HTTP', overHttp)
