// @ts-check
import { Agent, createServer, request as send } from 'node:http'
import { answer } from '../lib/process.js'

/** The least that can stand between a client and a provider: bytes in, bytes out, connections kept, nothing looked at. */
const upstream = Number(process.argv[2])
const agent = new Agent({ keepAlive: true, maxFreeSockets: 256 })

const server = createServer((request, response) => {
  const { host: _, connection: __, ...headers } = request.headers
  const onward = send({ port: upstream, host: '127.0.0.1', path: request.url, method: request.method, headers, agent }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers)
    answered.pipe(response)
  })
  onward.on('error', () => response.destroy())
  request.pipe(onward)
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  answer({}, { ready: { port } })
})
