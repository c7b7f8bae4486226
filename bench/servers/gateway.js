// @ts-check
import { llmAgent } from '../../dist/agents/llm/index.js'
import { serve } from '../../dist/compose/index.js'
import { openaiCompatible } from '../../dist/providers/openai-compatible/index.js'
import { answer } from '../lib/process.js'

/** An agent with a model, and nothing else of it: what most users have. */
const provider = openaiCompatible({ name: 'mock', baseUrl: `http://127.0.0.1:${process.argv[2]}/v1` })
const agent = llmAgent({ name: 'demo', model: { provider, model: 'mock' } })
const server = await serve(agent, { port: 0, host: '127.0.0.1', data: 'memory' })

answer({}, { ready: { port: server.port } })
