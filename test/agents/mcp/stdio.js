import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { testServer } from './server.js'

await testServer().connect(new StdioServerTransport())
