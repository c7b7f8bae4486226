// Speaks ACP on standard input and output, and is a client of the server whose WebSocket is its first argument.
import { createInterface } from 'node:readline'
import { WebSocket } from 'ws'

const socket = new WebSocket(process.argv[2] ?? '')
const opened = new Promise((resolve) => socket.once('open', resolve))
socket.on('message', (data) => process.stdout.write(`${String(data)}\n`))
socket.on('close', () => process.exit(0))
socket.on('error', () => process.exit(1))
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => void opened.then(() => socket.send(line)))
lines.on('close', () => socket.close())
