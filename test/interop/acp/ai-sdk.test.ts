/** The AI SDK over ACP: a provider of others, which starts `uamp acp` and speaks to it. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { acpTools, createACPProvider, type ACPProvider } from '@mcpc-tech/acp-ai-provider'
import { generateText, streamText, tool, type ToolSet } from 'ai'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { folder, MAIN } from './clients.ts'

interface At {
  readonly cwd: string
  readonly persistSession?: boolean
  readonly existingSessionId?: string
}

function provider({ cwd, ...more }: At): ACPProvider {
  const made = createACPProvider({
    command: process.execPath,
    args: [MAIN, 'acp', '--data', cwd],
    session: { cwd, mcpServers: [] },
    authMethodId: 'uamp',
    ...more,
  })
  onTestFinished(() => made.cleanup())
  return made
}

/** The agent's own tools. The types of the provider are less strict than ours. */
function own(acp: ACPProvider): ToolSet {
  return acp.tools as ToolSet
}

test('the AI SDK over ACP: text, and a conversation that goes on', { timeout: 60_000 }, async () => {
  const acp = provider({ cwd: await folder(), persistSession: true })
  const model = acp.languageModel()
  expect((await generateText({ model, prompt: 'hello', tools: own(acp) })).text).toBe('You said: hello')
  const session = acp.getSessionId()
  expect((await generateText({ model, prompt: '/history', tools: own(acp) })).text).toContain('hello')
  expect(acp.getSessionId()).toBe(session)
})

test('the AI SDK over ACP: streaming, thoughts and tools of the agent', { timeout: 60_000 }, async () => {
  const acp = provider({ cwd: await folder(), persistSession: true })
  const model = acp.languageModel()
  const pieces: string[] = []
  for await (const piece of streamText({ model, prompt: '/count 5 20', tools: own(acp) }).textStream) pieces.push(piece)
  expect(pieces.length).toBeGreaterThan(1)
  expect(pieces.join('')).toContain('1 2 3 4 5')
  const thinking = streamText({ model, prompt: '/think life', tools: own(acp) })
  expect(await thinking.reasoningText).toContain('life')
  expect(await thinking.finishReason).toBe('stop')
  const adding = streamText({ model, prompt: '/tool add {"a":1,"b":2}', tools: own(acp) })
  expect(await adding.toolCalls).toMatchObject([{ input: { toolName: 'add', args: { a: 1, b: 2 } } }])
  expect(JSON.stringify((await adding.toolResults)[0]?.output)).toContain('3')
})

test('the AI SDK over ACP: a tool of the program that uses it', { timeout: 60_000 }, async () => {
  const acp = provider({ cwd: await folder(), persistSession: true })
  const model = acp.languageModel()
  const names: string[] = []
  const greet = tool({
    description: 'Greets a person',
    inputSchema: z.object({ name: z.string() }),
    execute: async ({ name }) => {
      names.push(name)
      return `Hello, ${name}!`
    },
  })
  const tools = acpTools({ greet }) as unknown as ToolSet
  const streamed = streamText({ model, prompt: '/tool greet {"name":"Ada"}', tools })
  expect(await streamed.text).toContain('greet answered: Hello, Ada!')
  expect(await streamed.toolCalls).toMatchObject([{ input: { toolName: 'greet', args: { name: 'Ada' } } }])
  expect(names).toEqual(['Ada'])
  // `generateText` names no tools itself: it has those that the session was opened with.
  const { text } = await generateText({ model, prompt: '/tool greet {"name":"Bob"}', tools })
  expect(text).toBe('greet answered: Hello, Bob!')
  expect(names).toEqual(['Ada', 'Bob'])
  const other = provider({ cwd: await folder(), persistSession: true })
  await other.initSession(tools as Parameters<ACPProvider['initSession']>[0])
  const { text: first } = await generateText({ model: other.languageModel(), prompt: '/tool greet {"name":"Eve"}', tools })
  expect(first).toBe('greet answered: Hello, Eve!')
})

test('the AI SDK over ACP: an abort is not told to the agent, the end of the provider is', { timeout: 60_000 }, async () => {
  const cwd = await folder()
  const acp = provider({ cwd, persistSession: true })
  const model = acp.languageModel()
  const stop = new AbortController()
  const counting = streamText({ model, prompt: '/count 100000 5', tools: own(acp), abortSignal: stop.signal })
  let heard = ''
  let last = ''
  for await (const part of counting.fullStream) {
    last = part.type
    if (part.type === 'text-delta') heard += part.text
    if (heard.length > 10) stop.abort()
  }
  expect(last).toBe('abort')
  // The provider sends no `session/cancel`: the agent goes on, and a prompt beside another is refused.
  const beside = generateText({ model, prompt: 'hello', tools: own(acp), maxRetries: 0 })
  await expect(beside).rejects.toMatchObject({ code: -32600, data: { code: 'response_in_progress' } })
  const existingSessionId = acp.getSessionId() as string
  const exited = once((model as unknown as { readonly agentProcess: ChildProcess }).agentProcess, 'exit')
  acp.cleanup()
  await exited
  const again = provider({ cwd, existingSessionId })
  const { text } = await generateText({ model: again.languageModel(), prompt: '/history', tools: own(again) })
  expect(text).toMatch(/^user: \/count 100000 5\nassistant: 1 2 3[ \d]*\n/)
})

test('the AI SDK over ACP: an agent that fails', { timeout: 60_000 }, async () => {
  const acp = provider({ cwd: await folder(), persistSession: true })
  const model = acp.languageModel()
  const failing = generateText({ model, prompt: '/error rate_limited', tools: own(acp), maxRetries: 0 })
  await expect(failing).rejects.toMatchObject({ code: -32005, data: { code: 'rate_limited' } })
  const errors: unknown[] = []
  const { fullStream } = streamText({ model, prompt: '/error of_its_own', tools: own(acp), onError: () => undefined })
  for await (const part of fullStream) {
    if (part.type !== 'error') continue
    errors.push(part.error)
    // The provider does not close its stream after an error.
    break
  }
  expect(errors).toMatchObject([{ name: 'ACPError', code: -32603, data: { code: 'of_its_own' } }])
  expect((await generateText({ model, prompt: 'still there?', tools: own(acp) })).text).toBe('You said: still there?')
})
