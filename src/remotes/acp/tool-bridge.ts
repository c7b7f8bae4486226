/**
 * The program of an MCP server for agents that start programs and do not speak HTTP: each line on its input is posted to us, and our
 * answers are lines on its output. It is a text, and not a file, because a package that was bundled has no file of ours to name.
 */
export const BRIDGE = `
const { request } = require('node:http')
const { createInterface } = require('node:readline')
const { UAMP_TOOLS_URL: url, UAMP_TOOLS_SECRET: secret } = process.env
const headers = { authorization: 'Bearer ' + secret }
const say = (text) => process.stdout.write(text + '\\n')
const post = (line) => {
  const failed = () => {
    const { id } = JSON.parse(line)
    if (id !== undefined) say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'The tools are gone' } }))
  }
  const sent = request(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }, (answer) => {
    let text = ''
    answer.setEncoding('utf8').on('data', (piece) => (text += piece)).on('error', failed)
    answer.on('end', () => (answer.statusCode === 200 ? say(text) : answer.statusCode === 202 || failed()))
  })
  sent.on('error', failed).end(line)
}
const news = request(url, { headers: { ...headers, accept: 'text/event-stream' } }, (answer) => {
  if (answer.statusCode === 200) createInterface({ input: answer }).on('line', (line) => line.startsWith('data: ') && say(line.slice(6)))
})
news.on('error', () => undefined).end()
createInterface({ input: process.stdin }).on('line', (line) => line.trim() && post(line)).on('close', () => process.exit())
`
