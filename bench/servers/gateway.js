// @ts-check
import { llmAgent } from 'uamp/agents/llm'
import { serve } from 'uamp/server/node'
import { openaiCompatible } from 'uamp/providers/openai-compatible'
import { answer } from '../lib/process.js'
import { dataOf } from './data.js'

/** An agent with a model, and nothing else of it: what most users have. */
const [, , upstream, store = 'memory'] = process.argv
const provider = openaiCompatible({ name: 'mock', baseUrl: `http://127.0.0.1:${upstream}/v1` })
const agent = llmAgent({ name: 'demo', model: { provider, model: 'mock' } })
const { data, remove } = await dataOf(store)
const server = await serve(agent, { port: 0, host: '127.0.0.1', data })

answer(
  {},
  {
    ready: { port: server.port },
    async close() {
      await server.close({ graceMs: 0 })
      await remove()
    },
  },
)
