import { expect, test } from 'vitest'
import type { Mapping } from '../../src/core/reading/mapping.ts'
import { Narration } from '../../src/transports/a2a/tasks/narration.ts'
import { Updates } from '../../src/transports/acp/updates.ts'
import { RunEncoder } from '../../src/transports/ag-ui/encoder.ts'
import { ChunkEncoder } from '../../src/transports/completions/chunks.ts'
import { FrameEncoder } from '../../src/transports/envelope/frames.ts'
import { Narrator } from '../../src/transports/omnia/narrator.ts'
import { Turns } from '../../src/transports/realtime/turns.ts'
import { Answer } from '../../src/transports/responses/answer.ts'

type Words = { readonly [T in keyof Mapping<never>]: readonly [words: string, ...rest: unknown[]] }

/** Each protocol, what its guide is, and the table by which it tells events. */
const PROTOCOLS: readonly (readonly [name: string, guide: string, mapping: Words])[] = [
  ['Chat Completions', 'openai.md#chat-completions', ChunkEncoder.mapping],
  ['Responses', 'openai.md#responses', Answer.mapping],
  ['Realtime', 'openai.md#realtime', Turns.mapping],
  ['A2A', 'a2a.md#what-becomes-of-what', Narration.mapping],
  ['AG-UI', 'ag-ui.md#what-becomes-of-what', RunEncoder.mapping],
  ['ACP', 'acp.md#what-an-agent-can-do', Updates.mapping],
  ['Omnia', 'omnia.md#what-becomes-of-what', Narrator.mapping],
  ['UAMP envelope', 'envelope.md#what-becomes-of-what', FrameEncoder.mapping],
]

/** Events that become the same share a row. What is not told comes last. */
function rows(mapping: Words): string {
  const groups = new Map<string, string[]>()
  for (const [type, [words]] of Object.entries(mapping)) groups.set(words, [...(groups.get(words) ?? []), `\`${type}\``])
  const told = [...groups].toSorted(([one], [other]) => Number(one.startsWith('not told')) - Number(other.startsWith('not told')))
  return told.map(([words, types]) => `| ${types.join(', ')} | ${words} |`).join('\n')
}

const sections = PROTOCOLS.map(
  ([name, guide, mapping]) => `## ${name}\n\n[The guide](${guide}).\n\n| event | becomes |\n|---|---|\n${rows(mapping)}\n`,
)

/** docs/mapping.md. */
const page = `# Mapping

What becomes of an event in other protocols. The tables of the protocols are those by which their code tells events: \`test/docs/mapping.test.ts\` writes this page, and fails when it says anything else (\`npx vitest run test/docs/mapping.test.ts -u\` writes it anew). An event that a protocol has no word for goes into its extension slot, where it has one.

UAMP events are told as they are; extension events only to clients that [announced](events.md#extension-events) them.

## Extension events

What others have and UAMP events lack.

| event | what |
|---|---|
| \`x.state.snapshot\`, \`x.state.delta\` | shared state, and RFC 6902 patches to it |
| \`x.messages.snapshot\` | the conversation as a whole |
| \`x.activity.snapshot\`, \`x.activity.delta\` | something in progress, shown beside the answer |
| \`x.step.started\`, \`x.step.finished\` | a named step |
| \`x.approval.request\` ← \`x.approval.response\` | may I? |
| \`x.plan\` | what is to be done, and how far it is |
| \`x.subagent.started\`, \`x.subagent.finished\` | another agent at work |
| \`x.reasoning.encrypted\` | reasoning that only its maker can read |
| \`x.custom\` | a named value of the agent's own; \`a2a.message\` is a message in place of a task of A2A |
| \`x.raw\` | an event of another system, as it came |
| \`x.ack\` | client events that are durable now |

## Extension slots

| protocol | slot |
|---|---|
| UAMP events | \`extensions\`, \`metadata\` of every event; ours under \`extensions.uamp\` |
| AG-UI | \`metadata.uamp\`, \`CUSTOM\` named \`uamp.…\`; of a run in \`extensions['ag-ui']\`, its state in \`extensions.uamp.state\` |
| ACP | \`_meta.uamp\`, \`_uamp/event\`; of a session in \`extensions.acp\` |
| A2A | \`metadata\`; of a request in \`extensions.a2a\` of the session |
| OpenAI | \`content_items\` and \`signature\` in Chat Completions; settings of a request under \`extensions.openai\` of the session |
| Omnia | \`ext\`, \`details\` of an error; of a message in \`extensions.omnia\` |
| UAMP envelope | \`ext.uamp\`; of a message in \`extensions.envelope\` of its request |

${sections.join('\n')}
## What we add to UAMP events

| where | field | meaning |
|---|---|---|
| text content | \`refusal\` | the agent declines; shown as text by those who do not know it |
| \`response.done\` | \`response.extensions.uamp.stop_reason\` | \`length\` or \`content_filter\`: the answer is not whole; \`input_required\`, \`auth_required\`, \`rejected\`: what a task of A2A is then |
| every server event of the log | \`seq\` | its number, from which a reader resumes |
| \`usage.delta\` | \`extensions.uamp.unpriced\` | \`true\`: nobody knows the price of the model, so \`cost\` is missing |
| \`session.create\`, \`session\` | \`extensions.uamp.resume\`, \`.on_detach\` | [resume, and what a lost connection means](events.md#when-the-connection-is-lost) |
| \`session.create\`, \`client_capabilities\` | \`extensions.uamp.ack\`, \`.events\` | which of \`x.*\` to send |
| \`session.created\` | \`extensions.uamp.request\`, \`.resume\` | which \`session.create\` it answers; whether all was recovered |
| \`response.done\`, \`response\` | \`extensions.uamp.waiting\` | the questions that a one-way response ended with |
`

test('docs/mapping.md says by which tables events are told', async () => {
  await expect(page).toMatchFileSnapshot('../../docs/mapping.md')
})
