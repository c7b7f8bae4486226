/**
 * A server whose log never reaches the store: the rounds in which it is committed do not come. What a client says is written all the
 * same, as ever. So whatever an agent said is lost when this process is killed.
 */
const ROUND_MS = 40
const { setTimeout: later } = globalThis
globalThis.setTimeout = (run, ms, ...given) => later(ms === ROUND_MS ? () => undefined : run, ms, ...given)

const { defineAgent, text } = await import('uamp')
const { serve } = await import('uamp/server/node')

const agent = defineAgent('shapes', async function* ({ signal }) {
  yield text('Lost.')
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
})
const { url } = await serve(agent, { port: 0, data: process.argv[2], log: () => undefined })
process.stdout.write(`${url}\n`)
