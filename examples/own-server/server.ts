import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { demo } from 'uamp/agents/demo'
import { createAgentApp } from 'uamp/server/node'

const { app, handleRequest, handleUpgrade, close } = createAgentApp(demo())
app.get('/mine/:name', (c) => c.text(`a route on the app, for ${c.req.param('name')}`))

const server = createServer((request, response) => {
  if (request.url === '/shop') response.end('a page of the server that was here before')
  else void handleRequest(request, response)
})
server.on('upgrade', handleUpgrade)
server.listen(Number(process.env['PORT'] ?? 8787), '127.0.0.1', () => {
  console.log(`Listening at http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

process.once('SIGTERM', async () => {
  server.close()
  await close()
})
