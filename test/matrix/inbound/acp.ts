import { Client, overSocket } from '../../acp/wire.ts'
import { RESULT } from '../far-agent.ts'
import type { Inbound } from './inbound.ts'

export const acp: Inbound = {
  name: 'ACP, WebSocket',
  // ACP, File System: the tools of an editor are its files and terminals.
  tool: 'read_text_file',
  arguments: { path: '/project/notes.txt' },
  words: {
    tool: "a request: `fs/read_text_file`, `terminal/create`; or the client's MCP server",
    cancel: '`session/cancel`, `stopReason` `cancelled`',
    error: 'the error of `session/prompt`',
  },
  async connect(url) {
    const calls: string[] = []
    const read = () => {
      calls.push('read_text_file')
      return { content: RESULT }
    }
    const client = await Client.connect(overSocket(url), { 'fs/read_text_file': read })
    await client.initialize({ fs: { readTextFile: true } })
    const session = await client.open()
    return {
      async say(text) {
        const { error } = await client.say(session, text)
        return { text: client.text, calls, error: error?.message }
      },
      async cancel(text) {
        const prompt = client.say(session, text)
        await client.update('agent_message_chunk')
        client.send({ method: 'session/cancel', params: { sessionId: session } })
        return (await prompt)['result'].stopReason
      },
    }
  },
}
