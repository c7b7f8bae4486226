import type { EventOf } from '../../client/index.ts'
import type { ClientDraft } from '../../client/drafts.ts'
import type { Console } from './input/console.ts'

type Request = EventOf<'x.approval.request'>

const ARGUMENTS = 500

/** Questions of the agent whether it may do something, and what the user has allowed for the rest of the chat. */
export class Approvals {
  readonly #console: Console
  readonly #allowed = new Set<string>()

  constructor(console: Console) {
    this.#console = console
  }

  /** An aborted question, and one that nobody answers, is a no. */
  async decide(request: Request, signal: AbortSignal): Promise<ClientDraft> {
    const { approval_id, tool_call: call } = request
    const answer = (approved: boolean, option?: string): ClientDraft => ({
      type: 'x.approval.response',
      approval_id,
      approved,
      ...(option !== undefined && { option }),
    })
    if (call && this.#allowed.has(call.name)) return answer(true)
    const choices = choicesOf(request)
    const first = choices.findIndex(({ approved }) => !approved)
    const at = await this.#console.choose({ text: textOf(request), choices, first: Math.max(0, first) }, signal)
    const chosen = at === undefined ? undefined : choices[at]
    if (chosen?.always && call) this.#allowed.add(call.name)
    return answer(chosen?.approved ?? false, chosen?.option)
  }
}

interface Offered {
  readonly key: string
  readonly label: string
  readonly approved: boolean
  readonly option?: string
  readonly always?: true
}

/** The agent's own options, or the usual ones. */
function choicesOf({ options = [], tool_call: call }: Request): readonly Offered[] {
  if (options.length === 0) {
    const always = { key: 'a', label: `Always allow ${call?.name ?? ''} in this chat`, approved: true, always: true } as const
    return [{ key: 'y', label: 'Yes', approved: true }, { key: 'n', label: 'No', approved: false }, ...(call ? [always] : [])]
  }
  const taken = new Set<string>()
  return options.map(({ id, label, kind = id }, at) => {
    const approved = kind.startsWith('allow')
    const wish = approved ? (kind.includes('always') ? 'a' : 'y') : 'n'
    const key = taken.has(wish) ? String(at + 1) : wish
    taken.add(key)
    return { key, label, approved, option: id }
  })
}

function textOf({ message, tool_call: call }: Request): string {
  if (!call || message.includes(call.arguments)) return message
  if (/^\s*{\s*}\s*$/.test(call.arguments) && message.includes(call.name)) return message
  const shown = call.arguments.length > ARGUMENTS ? `${call.arguments.slice(0, ARGUMENTS)}…` : call.arguments
  return `${message}\n  ${call.name} ${shown}`
}
