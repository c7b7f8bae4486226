// @ts-check
/** A bare server: how quickly a process of this machine can answer at all. Webhooks end here too. */
import { createServer } from 'node:http'

process.on('disconnect', () => process.exit())
const server = createServer((request, response) => {
  request.resume()
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ kind: 'ready', port: typeof address === 'object' ? address?.port : 0 })
})
