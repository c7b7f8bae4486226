import type { ContentItem, MediaItem, ToolCall } from '../../protocol/content.ts'
import { isRecord, jsonIn } from '../../protocol/json.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { mediaSource } from '../../wire/media-source.ts'
import { fileText, note } from '../../wire/media-parts.ts'
import { toSteps, type ResultStep } from '../../wire/steps.ts'
import type { Traits } from './models.ts'
import { given, UNSIGNED, wireId } from './signatures.ts'

/** Gemini API, Part. */
type Part = Readonly<Record<string, unknown>>

export interface Content {
  readonly role: 'user' | 'model'
  readonly parts: Part[]
}

/** Media that Gemini takes. It refuses other files. */
const TAKEN = /^(image|audio|video|text)\/|^application\/pdf$/

const BEGIN = '(The conversation begins.)'

/** The conversation in two roles. All results of a step come together in the user's content after it. */
export function toContents(messages: readonly Message[], traits: Traits): { system: string[]; contents: Content[] } {
  const system: string[] = []
  const contents: Content[] = []
  const names = new Map<string, string>()
  const say = (role: Content['role'], parts: readonly Part[]): void => {
    const last = contents.at(-1)
    if (last?.role === role) last.parts.push(...parts)
    else if (parts.length > 0) contents.push({ role, parts: [...parts] })
  }
  /** Media of results, for models whose results cannot hold it. It follows the last result. */
  let after: Part[] = []
  const flush = (): void => {
    say('user', after)
    after = []
  }
  for (const step of toSteps(messages)) {
    if (step.kind !== 'result') flush()
    if (step.kind === 'system') system.push(step.text)
    if (step.kind === 'user') say('user', step.items.flatMap(shown))
    if (step.kind === 'assistant') {
      for (const { id, name } of step.calls) names.set(id, name)
      say('model', said(step.items, traits))
    }
    if (step.kind === 'result') {
      const { result, beside } = functionResponse(step, { name: names.get(step.callId) ?? '', traits })
      say('user', [result])
      after.push(...beside)
    }
  }
  flush()
  // Gemini wants the user to speak first, and refuses an empty conversation.
  if (contents[0]?.role !== 'user') contents.unshift({ role: 'user', parts: [{ text: BEGIN }] })
  return { system, contents }
}

function shown(item: ContentItem): Part[] {
  if (item.type === 'text') return item.text === '' ? [] : [{ text: item.text }]
  return item.type === 'tool_call' || item.type === 'tool_result' || item.type === 'thinking'
    ? []
    : [mediaPart(item) ?? { text: note(item) }]
}

/** Content that the model said, with each signature at the part that it came with. */
function said(items: readonly ContentItem[], { third }: Traits): Part[] {
  const parts: Part[] = []
  let waiting: string | undefined
  let called = false
  const put = (part: Part): void => {
    parts.push(waiting === undefined ? part : { ...part, thoughtSignature: waiting })
    waiting = undefined
  }
  for (const item of items) {
    if (item.type === 'thinking') {
      const signature = given(item.signature)
      // Thoughts without a signature are for people. The model does not need them back.
      if (signature === undefined) continue
      if (waiting !== undefined) put({ text: '' })
      waiting = signature
      if (item.thinking !== '') put({ text: item.thinking, thought: true })
    } else if (item.type === 'tool_call') {
      // Gemini signs only the first of several calls.
      if (third && !called) waiting ??= UNSIGNED
      called = true
      put(functionCall(item.tool_call))
    } else {
      for (const part of shown(item)) put(part)
    }
  }
  if (waiting !== undefined) put({ text: '' })
  return parts
}

function functionCall({ id, name, arguments: args }: ToolCall): Part {
  const value = json(args === '' ? '{}' : args)
  // Arguments that are not a JSON object are shown to the model as the mistake that they are.
  return { functionCall: { ...wireId(id), name, args: isRecord(value) ? value : { invalid_arguments: args } } }
}

function functionResponse(
  { callId, text, items, isError }: ResultStep,
  { name, traits }: { readonly name: string; readonly traits: Traits },
): { result: Part; beside: Part[] } {
  const extra = textOf(items)
  const media = items.flatMap((item) => (item.type === 'text' ? [] : shown(item)))
  // Gemini API, FunctionResponse: without one of these keys, Gemini would take the whole object for the output.
  const response = { [isError ? 'error' : 'output']: json(text), ...(extra !== '' && { text: extra }) }
  const inside = traits.third && media.length > 0 && media.every((part) => part['inlineData'] !== undefined)
  return {
    result: { functionResponse: { ...wireId(callId), name, response, ...(inside && { parts: media }) } },
    beside: inside ? [] : media,
  }
}

function mediaPart(item: MediaItem): Part | undefined {
  const plain = item.type === 'file' ? fileText(item) : undefined
  if (plain !== undefined) return { text: plain }
  const source = mediaSource(item)
  if (!source || !TAKEN.test(source.mime)) return undefined
  if ('url' in source) return { fileData: { fileUri: source.url, mimeType: source.mime } }
  return { inlineData: { mimeType: source.mime, data: source.data } }
}

/** The value of a JSON text, or the text itself. */
function json(text: string): unknown {
  const value = jsonIn(text)
  return value === undefined ? text : value
}
