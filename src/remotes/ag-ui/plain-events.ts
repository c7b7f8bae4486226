import * as z from 'zod/mini'
import { draftIn, type Draft } from '../../protocol/events.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { PatchOperation } from '../../protocol/extension-events.ts'
import { fieldsOf, isRecord, recordsIn, type Slot } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { CONTENT_ACTIVITY } from '../../wire/ag-ui/messages.ts'

const Patch = z.array(PatchOperation)

/** Events that mean the same whatever came before them. */
export const PLAIN: Readonly<Record<string, (event: Slot) => Draft>> = {
  STATE_SNAPSHOT: ({ snapshot }) => ({ type: 'x.state.snapshot', snapshot }),
  STATE_DELTA: ({ delta }) => ({ type: 'x.state.delta', delta: patchIn(delta) }),
  ACTIVITY_DELTA: (event) => ({ ...activityIds(event), type: 'x.activity.delta', patch: patchIn(event['patch']) }),
  STEP_STARTED: ({ stepName }) => ({ type: 'x.step.started', name: text(stepName) }),
  STEP_FINISHED: ({ stepName }) => ({ type: 'x.step.finished', name: text(stepName) }),
  SUBAGENT_STARTED: ({ subagentRunId, name, parentSubagentRunId: parent, parentToolCallId: call }) => ({
    type: 'x.subagent.started',
    subagent_id: text(subagentRunId),
    name: text(name),
    ...(parent != null && { parent_id: text(parent) }),
    ...(call != null && { call_id: text(call) }),
  }),
  SUBAGENT_FINISHED: (event) => subagentFinished(event, 'completed'),
  SUBAGENT_ERROR: (event) => subagentFinished(event, event['code'] === 'cancelled' ? 'cancelled' : 'failed'),
  // A draft of the protocol: an annotation.
  META: ({ metaType, payload }) => ({ type: 'x.custom', name: `meta.${text(metaType)}`, value: payload }),
  RAW: ({ event, source }) => ({ type: 'x.raw', event, ...(source != null && { source: text(source) }) }),
}

/** Events that only mark the beginning or end of others. */
export const FRAMES =
  /^(RUN_STARTED|TOOL_CALL_END|(REASONING|THINKING)_(START|END|MESSAGE_START|MESSAGE_END|TEXT_MESSAGE_START|TEXT_MESSAGE_END))$/

/** Activities of another uamp server become the media, progress and plans that they were. */
const OWN_ACTIVITIES: Readonly<Record<string, (content: Slot) => Slot>> = {
  [CONTENT_ACTIVITY]: ({ item }) => ({ type: 'response.delta', delta: item }),
  'uamp.progress': (content) => ({ type: 'progress', ...content }),
  'uamp.tool_progress': (content) => ({ type: 'response.delta', delta: { type: 'tool_progress', tool_progress: content } }),
  PLAN: (content) => ({ type: 'x.plan', ...content }),
}

export function activity(event: Slot): Draft {
  const ids = activityIds(event)
  const content = fieldsOf(event['content'])
  const own = Object.hasOwn(OWN_ACTIVITIES, ids.activity_type) ? OWN_ACTIVITIES[ids.activity_type]?.(content) : undefined
  const replace = typeof event['replace'] === 'boolean' && { replace: event['replace'] }
  return (own && draftIn(own)) ?? { type: 'x.activity.snapshot', ...ids, content, ...replace }
}

/** Events of another uamp server that AG-UI has no name for. */
const OWN = /^uamp\.(audio\.(?:delta|done)|payment\.(?:accepted|balance|error)|response\.delta)$/

export function custom({ name, value }: Slot): Draft {
  const type = OWN.exec(text(name))?.[1]
  const own = type !== undefined && isRecord(value) ? draftIn({ type, ...value }) : undefined
  return own ?? { type: 'x.custom', name: text(name), value }
}

const COUNTS = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['cachedInputTokens', 'cached_tokens'],
  ['cacheWriteInputTokens', 'cache_write'],
  ['reasoningTokens', 'reasoning'],
] as const

/** The usage of a run, which lists each model. */
export function usageOf(given: unknown): Draft[] {
  const entries = recordsIn(given)
  const delta: Usage = {}
  for (const entry of entries)
    for (const [theirs, ours] of COUNTS) if (typeof entry[theirs] === 'number') delta[ours] = (delta[ours] ?? 0) + entry[theirs]
  return entries.length === 0 ? [] : [{ type: 'usage.delta', delta }]
}

/** A field that should be a text. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function patchIn(value: unknown): z.infer<typeof Patch> {
  return z.safeParse(Patch, value, FIRST_EXPLAINED).data ?? []
}

function activityIds({ messageId, activityType }: Slot) {
  return { activity_id: text(messageId), activity_type: text(activityType) }
}

function subagentFinished({ subagentRunId, result }: Slot, status: 'completed' | 'cancelled' | 'failed'): Draft {
  return { type: 'x.subagent.finished', subagent_id: text(subagentRunId), status, ...(result !== undefined && { result }) }
}
