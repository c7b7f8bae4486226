import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import * as z from 'zod'

/** A real MCP server with a tool of every kind. */
export function testServer() {
  const server = new McpServer({ name: 'test', version: '1.0.0' }, { instructions: 'Ask the test server for everything.' })
  server.registerTool(
    'add',
    { description: 'The sum', inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } }),
  )
  server.registerTool('fails', { description: 'Fails' }, () => ({ isError: true, content: [{ type: 'text', text: 'out of ink' }] }))
  server.registerTool('env', { inputSchema: { name: z.string() } }, ({ name }) => ({
    content: [{ type: 'text', text: process.env[name] ?? 'unset' }],
  }))
  server.registerTool('media.all', {}, () => ({
    content: [
      { type: 'text', text: 'look' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///a/b.bin', mimeType: 'application/x-b', blob: 'aGk=' } },
      { type: 'resource', resource: { uri: 'file:///c.txt', text: 'in a file' } },
      { type: 'resource_link', uri: 'https://example.com/d', name: 'd' },
    ],
  }))
  server.registerTool('slow', {}, async ({ _meta, sendNotification, signal }) => {
    const progressToken = _meta?.progressToken
    if (progressToken !== undefined) {
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2, message: 'half' } })
    }
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return { content: [] }
  })
  server.registerTool('grow', {}, () => {
    server.registerTool('grown', {}, () => ({ content: [{ type: 'text', text: 'tall' }] }))
    return { content: [{ type: 'text', text: 'growing' }] }
  })
  server.registerTool('flood', { inputSchema: { length: z.number() } }, ({ length }) => ({
    content: [{ type: 'text', text: 'x'.repeat(length) }],
  }))
  server.registerTool('die', {}, () => {
    setImmediate(() => process.exit(1))
    return { content: [{ type: 'text', text: 'bye' }] }
  })
  return server
}
