import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'

/** A promise and what fulfils it. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open!: () => void
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}

/** Says "one", waits until it may go on or is cancelled, and says " two". */
export function halfway(opened: Promise<void>, name = 'halfway'): AgentPort {
  return defineAgent(name, async function* ({ signal }) {
    yield text('one')
    await Promise.race([opened, new Promise((resolve) => signal.addEventListener('abort', resolve))])
    yield text(' two')
  })
}

/** Says the roles and texts of the conversation. */
export function recall(): AgentPort {
  return defineAgent('recall', async function* ({ messages }) {
    yield text(messages.map(({ role, content }) => `${role}:${content ?? ''}`).join('|'))
  })
}
