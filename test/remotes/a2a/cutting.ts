import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A way to a server that breaks after so many bytes of an answer, the first `times` times. */
export async function cutting(to: () => string, { after, times = 1 }: { readonly after: number; readonly times?: number }) {
  let cuts = 0
  const sockets = new Set<Socket>()
  const server = createServer((inner) => {
    const { hostname, port } = new URL(to())
    const outer = connect(Number(port), hostname)
    let size = 0
    for (const socket of [inner, outer]) {
      sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          inner.destroy()
          outer.destroy()
        })
    }
    inner.pipe(outer)
    outer.on('data', (bytes: Buffer) => {
      inner.write(bytes)
      size += bytes.length
      if (cuts >= times || size < after) return
      cuts++
      outer.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts }
}
