import { expect, test } from 'vitest'
import type { Tool } from '../core/ports/skill.ts'
import { Agent } from './agent.ts'
import { checkTools } from './check-tools.ts'
import { llmAgent, type LlmAgentInit } from './llm/index.ts'

const tool: Tool = { name: 'book', run: () => 'booked' }
/** An agent in JavaScript, whose types nobody has checked. */
const unchecked = (init: object): LlmAgentInit => ({ name: 'guide', model: 'openai/gpt-5-mini', ...init })

test('a misspelt field of a tool is an error, and a field of the user is not', () => {
  const misspelt = { ...tool, needApproval: true }
  const message = 'The tool "book" has no field "needApproval": did you mean "needsApproval"?'
  expect(() => checkTools([misspelt])).toThrow(message)
  expect(() => new Agent({ name: 'guide', tools: [misspelt] })).toThrow(message)
  expect(() => llmAgent(unchecked({ tools: [misspelt] }))).toThrow(message)
  expect(() => checkTools([{ ...tool, owner: 'box office' } as Tool])).not.toThrow()
})

test('a tool that cannot run is an error', () => {
  expect(() => checkTools([{ name: 'book' } as Tool])).toThrow('The tool "book" has no function "run"')
  expect(() => checkTools([undefined as unknown as Tool])).toThrow('check the names in the list of tools')
})

test('an agent without a model, or with a misspelt option, is an error', () => {
  expect(() => llmAgent(unchecked({ model: undefined }))).toThrow('An agent needs a model')
  expect(() => llmAgent(unchecked({ instruction: 'Be brief.' }))).toThrow('has no field "instruction": did you mean "instructions"?')
})
