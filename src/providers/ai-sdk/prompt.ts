import type { ContentItem, MediaItem } from '../../protocol/content.ts'
import { isRecord, jsonIn } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { bareBase64, fileText, inputAudio, note, publicUrl, sniffedImage } from '../../wire/media-parts.ts'
import { toSteps, type ResultStep, type Step } from '../../wire/steps.ts'
import { fromSignature, isOwn, type Fields, type Traits, type UrlPatterns } from './model.ts'

export interface PromptOptions {
  readonly instructions: readonly string[]
  readonly traits: Traits
  readonly urls: UrlPatterns
  /** The media that the model is shown. The rest is described in words. */
  readonly shown: Shown
}

/** A model that refuses a file is shown images only, and one that refuses these nothing. */
export const SHOWN = ['all', 'images', 'nothing'] as const
export type Shown = (typeof SHOWN)[number]

type Part = Fields & { readonly type: string }
type PromptMessage = { readonly role: string; readonly content: string | readonly Part[] }

/** The conversation as a prompt of the AI SDK. */
export function toPrompt(messages: readonly Message[], options: PromptOptions): PromptMessage[] {
  const { traits, instructions } = options
  const steps = toSteps(messages)
  const first = steps.findIndex(({ kind }) => kind !== 'system')
  const isLeading = (step: Step, index: number): boolean => step.kind === 'system' && (traits.systemFirst || first < 0 || index < first)
  const leading = steps.flatMap((step, index) => (step.kind === 'system' && isLeading(step, index) ? [step.text] : []))
  const system = [...instructions, ...leading].filter((text) => text !== '')
  const prompt: PromptMessage[] = system.length > 0 ? [{ role: 'system', content: system.join('\n\n') }] : []
  const names = new Map<string, string>()
  let results: ResultStep[] = []
  const flush = (): void => {
    if (results.length > 0) prompt.push(...toResults(results, names, options))
    results = []
  }
  for (const [index, step] of steps.entries()) {
    if (isLeading(step, index)) continue
    if (step.kind === 'result') {
      results.push(step)
      continue
    }
    flush()
    if (step.kind === 'assistant') for (const { id, name } of step.calls) names.set(id, name)
    prompt.push(...toMessage(step, options))
  }
  flush()
  return prompt
}

function toMessage(step: Exclude<Step, ResultStep>, options: PromptOptions): PromptMessage[] {
  if (step.kind === 'system') return [{ role: 'system', content: step.text }]
  const content = step.items.flatMap((item) => (step.kind === 'user' ? toPart(item, options) : said(item)))
  return content.length === 0 ? [] : [{ role: step.kind, content }]
}

function said(item: ContentItem): Part[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ type: 'text', text: item.text }]
    case 'thinking':
      // Each vendor takes only thoughts that it signed itself, or that nobody signs.
      if (item.signature !== undefined && !isOwn(item.signature)) return []
      return [{ type: 'reasoning', text: item.thinking, ...given(item.signature) }]
    case 'tool_call': {
      const { id, name, arguments: args, encrypted_value } = item.tool_call
      return [{ type: 'tool-call', toolCallId: id, toolName: name, input: inputOf(args), ...given(encrypted_value) }]
    }
    case 'tool_result':
      return []
    default:
      return [{ type: 'text', text: note(item) }]
  }
}

/** What the vendor sent with this part, and wants back. */
function given(signature: string | undefined): Fields {
  const metadata = signature === undefined ? undefined : jsonIn(fromSignature(signature) ?? '')
  return isRecord(metadata) && Object.values(metadata).every(isRecord) ? { providerOptions: metadata } : {}
}

/** One mistake of a model must not fail every request after it. */
function inputOf(args: string): unknown {
  if (args.trim() === '') return {}
  return jsonIn(args) ?? { invalid_json: args }
}

/** The results of one message's calls, and a message of the user for media that this vendor's results cannot hold. */
function toResults(results: readonly ResultStep[], names: ReadonlyMap<string, string>, options: PromptOptions): PromptMessage[] {
  const beside: Part[] = []
  const content = results.map(({ callId, text, items, isError }): Part => {
    const parts = items.flatMap((item) => toPart(item, options))
    const inside = parts.length > 0 && options.traits.resultMedia && !isError
    if (parts.length > 0 && !inside) beside.push({ type: 'text', text: `Beside the result of the tool call ${callId}:` }, ...parts)
    const output = inside
      ? {
          type: 'content',
          value: [...(text === '' ? [] : [{ type: 'text', text }]), ...parts.map((part) => inResult(part, options.traits))],
        }
      : { type: isError ? 'error-text' : 'text', value: text }
    return { type: 'tool-result', toolCallId: callId, toolName: names.get(callId) ?? 'unknown', output }
  })
  return [{ role: 'tool', content }, ...(beside.length > 0 ? [{ role: 'user', content: beside }] : [])]
}

function inResult(part: Part, { isNew }: Traits): Fields {
  const { type, data, mediaType, filename } = part
  if (type !== 'file') return part
  const kind = String(mediaType).startsWith('image/') ? 'image' : 'file'
  if (data instanceof URL) return isNew ? { type: `${kind}-url`, url: data.href } : { type: 'text', text: data.href }
  if (!isNew) return { type: 'media', data, mediaType }
  return { type: `${kind}-data`, data, mediaType, ...(kind === 'file' && filename !== undefined && { filename }) }
}

function toPart(item: ContentItem, options: PromptOptions): Part[] {
  switch (item.type) {
    case 'text':
      return item.text === '' ? [] : [{ type: 'text', text: item.text }]
    case 'tool_call':
    case 'tool_result':
    case 'thinking':
      return []
    default:
      return [toMedia(item, options) ?? { type: 'text', text: note(item) }]
  }
}

function toMedia(item: MediaItem, { shown, urls }: PromptOptions): Part | undefined {
  const text = item.type === 'file' ? fileText(item) : undefined
  if (text !== undefined) return { type: 'text', text }
  if (shown === 'nothing' || (shown === 'images' && item.type !== 'image')) return undefined
  if (item.type === 'audio') {
    const sound = inputAudio(item)
    return sound && { type: 'file', data: sound.data, mediaType: sound.format === 'mp3' ? 'audio/mpeg' : 'audio/wav' }
  }
  const source = item.type === 'image' ? item.image : item.type === 'video' ? item.video : item.file
  const base64 = bareBase64(typeof source === 'object' && source.url.startsWith('data:') ? source.url : source)
  const mediaType = mediaTypeOf(item, base64)
  const detail = item.type === 'image' && item.detail !== undefined && { providerOptions: { openai: { imageDetail: item.detail } } }
  const more = { mediaType, ...(item.type === 'file' && { filename: item.filename }), ...detail }
  if (base64 !== undefined) return { type: 'file', data: base64, ...more }
  const url = publicUrl(source)
  if (url === undefined || !fetches(urls, mediaType, url)) return undefined
  return { type: 'file', data: new URL(url), ...more }
}

function mediaTypeOf(item: Exclude<MediaItem, { type: 'audio' }>, base64: string | undefined): string {
  if (item.type === 'file') return item.mime_type
  if (item.format !== undefined)
    return item.format.includes('/') ? item.format : `${item.type}/${item.format === 'jpg' ? 'jpeg' : item.format}`
  if (item.type === 'video') return 'video/mp4'
  return (base64 === undefined ? undefined : sniffedImage(base64)) ?? (base64 === undefined ? 'image/*' : 'image/png')
}

/** True if the vendor fetches this URL itself: the SDK would refuse any other. */
function fetches(urls: UrlPatterns, mediaType: string, url: string): boolean {
  const [kind] = mediaType.split('/')
  return Object.entries(urls).some(([type, patterns]) => {
    const fits = type === '*' || type === '*/*' || type === mediaType || type === `${kind}/*`
    return fits && URL.canParse(url) && patterns.some((pattern) => new RegExp(pattern.source, pattern.flags).test(url))
  })
}
