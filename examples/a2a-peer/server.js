/** Serves the agent with the A2A project's own SDK, over JSON-RPC and REST: somebody else's server, for `uamp` to talk to. */
import { DefaultRequestHandler } from '@a2a-js/sdk/server'
import { InMemoryTaskStore } from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import express from 'express'
import { createServer } from 'node:http'
import { Counter } from './agent.js'

const app = express()
const server = createServer(app).listen(Number(process.env.PORT ?? 41241), '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`
  const card = {
    name: 'Counter',
    description: 'Counts, and repeats what it is told',
    version: '1.0.0',
    supportedInterfaces: [
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
      { url: `${url}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' },
    ],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'count', name: 'Count', description: 'Counts to a number', tags: ['count'], examples: ['count 10 100'] }],
    signatures: [],
  }
  // `BINDING=HTTP+JSON` makes REST what it likes best.
  if (process.env.BINDING === 'HTTP+JSON') card.supportedInterfaces.reverse()
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Counter())
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication }
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }))
  app.use('/a2a', jsonRpcHandler(options))
  app.use('/rest', restHandler(options))
  console.log(`Listening at ${url}`)
})
