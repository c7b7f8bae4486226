// @ts-check

/** Models by provider, and the variable that has the provider's key. */
export const MODELS = {
  none: undefined,
  openai: { key: 'OPENAI_API_KEY', model: 'openai/gpt-5-mini' },
  anthropic: { key: 'ANTHROPIC_API_KEY', model: 'anthropic/claude-sonnet-4-5' },
  google: { key: 'GEMINI_API_KEY', model: 'google/gemini-2.5-flash' },
  ollama: { key: undefined, model: 'ollama/llama3.2' },
}

/** @typedef {{ name: string, language: 'ts' | 'js', model: keyof typeof MODELS, uamp: string }} Project */

/** @param {Project} project @returns {Record<string, string>} the text of each file */
export function filesOf({ name, language, model, uamp }) {
  const typed = language === 'ts'
  const agent = `agent.${language}`
  const provider = MODELS[model]
  return {
    'package.json': `${JSON.stringify(manifest({ name, agent, typed, uamp }), undefined, 2)}\n`,
    [agent]: provider ? modelAgent(provider) : PARROT,
    [`agent.test.${language}`]: (provider ? MODEL_TEST : PARROT_TEST).replace('./agent', `./${agent}`),
    ...(typed && { 'tsconfig.json': TSCONFIG }),
    '.env.example': environment(provider?.key),
    '.gitignore': 'node_modules\n.env\n.uamp\n',
  }
}

/** @param {{ name: string, agent: string, typed: boolean, uamp: string }} project */
function manifest({ name, agent, typed, uamp }) {
  const test = agent.replace('agent.', 'agent.test.')
  return {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: {
      start: `uamp serve ${agent}`,
      chat: 'uamp chat',
      // Node 20 does not run TypeScript by itself.
      test: typed ? `node --import tsx --test ${test}` : `node --test ${test}`,
      ...(typed && { check: 'tsc' }),
    },
    dependencies: { uamp },
    ...(typed && { devDependencies: { '@types/node': '^20.19.43', tsx: '^4.23.15', typescript: '^6.0.3' } }),
  }
}

const PARROT = `import { defineAgent } from 'uamp'

/** Says back what it hears, word by word. Put here what your agent does. */
export default defineAgent('parrot', async function* (turn) {
  const heard = turn.messages.at(-1)?.content ?? ''
  for (const word of heard.split(' ')) yield \`\${word} \`
})
`

/** @param {NonNullable<(typeof MODELS)[keyof typeof MODELS]>} provider */
function modelAgent({ key, model }) {
  return `import { llmAgent } from 'uamp/agents/llm'

/** What the agent is, whichever model speaks. */
export const assistant = {
  name: 'assistant',
  instructions: 'You are brief.',
}
${key === undefined ? '' : `\n// The key is ${key} of the environment.`}
export default llmAgent({ ...assistant, model: '${model}' })
`
}

const PARROT_TEST = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from 'uamp/client'
import { serve } from 'uamp/server/node'
import agent from './agent'

test('says back what it hears', async () => {
  const server = await serve(agent, { port: 0, data: 'memory', log: () => undefined })
  const client = connect(server.url)
  try {
    const session = await client.session()
    assert.equal(await session.say('hello there'), 'hello there ')
  } finally {
    client.close()
    await server.close()
  }
})
`

const MODEL_TEST = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { text } from 'uamp'
import { llmAgent, modelOf } from 'uamp/agents/llm'
import { connect } from 'uamp/client'
import { serve } from 'uamp/server/node'
import { scriptedProvider } from 'uamp/testing'
import { assistant } from './agent'

test('answers, with a model that says what it is told to', async () => {
  const provider = scriptedProvider([[text('Hello yourself.')]])
  const agent = llmAgent({ ...assistant, model: modelOf(provider, 'any') })
  const server = await serve(agent, { port: 0, data: 'memory', log: () => undefined })
  const client = connect(server.url)
  try {
    const session = await client.session()
    assert.equal(await session.say('hello'), 'Hello yourself.')
    assert.equal(provider.requests[0]?.messages.at(-1)?.content, 'hello')
  } finally {
    client.close()
    await server.close()
  }
})
`

const TSCONFIG = `{
  "compilerOptions": {
    "target": "ES2023",
    "module": "NodeNext",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  },
  "include": ["*.ts"]
}
`

/** @param {string | undefined} key */
function environment(key) {
  return `# Copy this file to .env, which \`uamp serve\` reads and git ignores.
${key === undefined ? '' : `${key}=\n`}# Who may call, name:secret, with secrets of at least 16 characters. Without any, only this machine may.
# UAMP_TOKENS=alice:
# The folder that keeps the sessions, or memory.
# UAMP_DATA=.uamp
`
}
