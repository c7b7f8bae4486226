import type { Draft } from '../protocol/events.ts'

/**
 * Throws at what nobody can be told, or what has no size. Not every agent was compiled, and a slip in one must harm nobody else: a
 * length that is no number would fill the memory of all, and an event that has no JSON would end the process when it is stored.
 */
export function checkDraft(draft: Draft): void {
  const given = draft as unknown as Loose
  const [holder, fields] = textsOf(given)
  for (const field of fields) {
    if (typeof holder?.[field] !== 'string') throw new TypeError(`The agent yielded ${draft.type} whose "${field}" is no text`)
  }
  checkJson(given)
}

type Loose = Readonly<Record<string, unknown>>

/** Where a draft has texts that others rely on. */
function textsOf(draft: Loose): [holder: Loose | undefined, fields: readonly string[]] {
  switch (draft['type']) {
    case 'response.delta':
      return textsOfDelta(draft['delta'] as Loose)
    case 'tool.call':
      return [draft, ['arguments']]
    case 'thinking':
      return [draft, ['content']]
    case 'audio.delta':
      return [draft, ['audio']]
    case 'transcript.delta':
      return [draft, ['transcript']]
    case 'response.error':
      return [draft['error'] as Loose | undefined, ['code']]
    default:
      return [undefined, []]
  }
}

function textsOfDelta(delta: Loose): [holder: Loose | undefined, fields: readonly string[]] {
  const within = delta[delta['type'] as string] as Loose | undefined
  switch (delta['type']) {
    case 'text':
      return [delta, ['text']]
    case 'tool_call':
      return [within, ['arguments']]
    case 'tool_result':
    case 'tool_progress':
      return [within, ['call_id']]
    default:
      return [undefined, []]
  }
}

function checkJson(value: unknown): void {
  if (typeof value === 'bigint') throw new TypeError('The agent yielded a bigint, for which JSON has no word')
  if (typeof value !== 'object' || value === null) return
  // It makes its text itself, and may fail.
  if ('toJSON' in value) JSON.stringify(value)
  else for (const key in value) checkJson((value as Loose)[key])
}
