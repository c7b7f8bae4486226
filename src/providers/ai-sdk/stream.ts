import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import { base64 } from '../../protocol/base64.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { callDraft, type AnswerReader } from '../../upstream/answer-drafts.ts'
import { present } from '../../wire/fields.ts'
import { cutOff } from '../../wire/upstream.ts'
import { toSignature, type Fields, type Metadata, type StreamPart, type Traits } from './model.ts'

export interface StreamOptions {
  readonly name: string
  readonly traits: Traits
  readonly newId: () => string
  /** Makes an error of what the SDK says went wrong in the middle of an answer. */
  readonly failed: (error: unknown) => UampError
}

interface Call {
  readonly name: string
  /** Arguments have come. */
  told: boolean
}

/** Turns the parts of one answer into drafts. */
export class PartStream implements AnswerReader<StreamPart> {
  readonly #options: StreamOptions
  /** The open calls; undefined for one that the vendor runs itself. */
  readonly #calls = new Map<string, Call | undefined>()
  /** What has to come back with each open thought. */
  readonly #thoughts = new Map<string, Metadata>()
  #finish: StreamPart | undefined

  constructor(options: StreamOptions) {
    this.#options = options
  }

  get over(): boolean {
    return this.#finish !== undefined
  }

  read(part: StreamPart, out: Draft[]): void {
    switch (part.type) {
      case 'text-delta':
        if (part.delta) out.push(text(part.delta))
        return
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#think(part, out)
      case 'tool-input-start':
        return this.#begin(part.id ?? '', part, out)
      case 'tool-input-delta':
        return this.#argue(part.id ?? '', part.delta ?? '', out)
      case 'tool-call':
        return this.#call(part, out)
      case 'file':
        return void out.push(fileDraft(part, this.#options.newId))
      case 'finish':
        this.#finish = part
        return
      case 'error':
        throw this.#options.failed(part.error)
      default:
      // Beginnings and ends, sources, raw chunks, and results of tools that the vendor runs: nothing for clients.
    }
  }

  usage(out: Draft[]): void {
    const usage = this.#finish && toUsage(this.#finish, this.#options.traits)
    if (usage && Object.keys(usage).length > 0) out.push({ type: 'usage.delta', delta: usage })
  }

  end(out: Draft[]): void {
    const { name } = this.#options
    for (const id of this.#thoughts.keys()) this.#sign(id, out)
    this.usage(out)
    if (!this.#finish || isCut(this.#finish)) throw cutOff(name)
    const reason = reasonOf(this.#finish)
    if (reason === 'error') throw new UampError('provider_error', `${name} stopped in the middle of its answer`)
    if (reason === 'length') out.push(done({ stop: 'length' }))
    if (reason === 'content-filter') out.push(done({ stop: 'content_filter' }))
  }

  #think({ type, id = '', delta = '', providerMetadata }: StreamPart, out: Draft[]): void {
    const known = this.#thoughts.get(id)
    this.#thoughts.set(id, merged(known, providerMetadata))
    if (delta !== '') out.push({ type: 'thinking', content: delta, is_delta: true })
    if (type === 'reasoning-end') this.#sign(id, out)
  }

  /** Closes a thought with what must go back with it. */
  #sign(id: string, out: Draft[]): void {
    const metadata = this.#thoughts.get(id) ?? {}
    this.#thoughts.delete(id)
    if (Object.keys(metadata).length === 0) return
    const redacted = Object.values(metadata).some((fields) => 'redactedData' in fields)
    out.push({ type: 'thinking', content: '', is_delta: true, ...(redacted && { redacted }), signature: toSignature(metadata) })
  }

  #begin(id: string, { toolName = '', providerExecuted, providerMetadata }: StreamPart, out: Draft[]): void {
    this.#calls.set(id, providerExecuted ? undefined : { name: toolName, told: false })
    if (!providerExecuted) out.push(signed(callDraft(id, toolName, ''), providerMetadata))
  }

  #argue(id: string, args: string, out: Draft[]): void {
    const call = this.#calls.get(id)
    if (!call || args === '') return
    call.told = true
    out.push(callDraft(id, call.name, args))
  }

  /** The whole call. A vendor that does not stream arguments sends nothing before it. */
  #call(part: StreamPart, out: Draft[]): void {
    const { toolCallId: id = '', input } = part
    if (!this.#calls.has(id)) this.#begin(id, part, out)
    if (this.#calls.get(id)?.told === false) this.#argue(id, typeof input === 'string' ? input : JSON.stringify(input ?? {}), out)
  }
}

/** A call with what has to come back with it. */
function signed(draft: Draft, metadata: Metadata | undefined): Draft {
  if (!metadata || draft.type !== 'response.delta' || draft.delta.type !== 'tool_call') return draft
  const tool_call = { ...draft.delta.tool_call, encrypted_value: toSignature(metadata) }
  return { type: 'response.delta', delta: { type: 'tool_call', tool_call } }
}

/** Vendors tell one piece at the beginning of a thought, and the next at its end. */
function merged(before: Metadata = {}, more: Metadata = {}): Metadata {
  const all: Record<string, Fields> = { ...before }
  for (const [vendor, fields] of Object.entries(more)) all[vendor] = { ...all[vendor], ...present(withoutNull(fields)) }
  return all
}

/** `null` is the SDK's word for "not yet". */
function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

function fileDraft({ mediaType = 'application/octet-stream', data = '' }: StreamPart, newId: () => string): Draft {
  const source = typeof data === 'string' ? data : base64(data)
  const [kind, format = ''] = mediaType.split(';')[0]?.split('/') ?? []
  const content_id = newId()
  if (kind === 'image') return { type: 'response.delta', delta: { type: 'image', image: source, format, content_id } }
  if (kind === 'audio') {
    return { type: 'response.delta', delta: { type: 'audio', audio: source, format: format === 'mpeg' ? 'mp3' : format, content_id } }
  }
  if (kind === 'video') return { type: 'response.delta', delta: { type: 'video', video: source, format, content_id } }
  const filename = `file.${format.replace(/[^\w]/g, '') || 'bin'}`
  return { type: 'response.delta', delta: { type: 'file', file: source, filename, mime_type: mediaType, content_id } }
}

function reasonOf({ finishReason }: StreamPart): unknown {
  return typeof finishReason === 'string' ? finishReason : fieldsOf(finishReason)['unified']
}

/** The SDK ends a stream that was cut off like any other, but without a reason. In v2 that may also be a reason that it does not know. */
function isCut(finish: StreamPart): boolean {
  const { usage, finishReason } = finish
  if (finishReason === 'unknown') return fieldsOf(usage)['outputTokens'] == null
  return reasonOf(finish) === 'other' && fieldsOf(finishReason)['raw'] == null
}

/** UAMP events §8.7. v3 counts in detail; in v2 it depends on the vendor whether `inputTokens` include the cache. */
function toUsage({ usage, providerMetadata }: StreamPart, { isNew, countsCacheApart }: Traits): Usage {
  const told = fieldsOf(usage)
  if (isNew) {
    const [input, output] = [fieldsOf(told['inputTokens']), fieldsOf(told['outputTokens'])]
    return counted({
      input: count(input['total']),
      uncached: count(input['noCache']),
      read: count(input['cacheRead']),
      written: count(input['cacheWrite']),
      output: count(output['total']),
      reasoning: count(output['reasoning']),
    })
  }
  const [input, read] = [count(told['inputTokens']), count(told['cachedInputTokens'])]
  const written = count(providerMetadata?.['anthropic']?.['cacheCreationInputTokens'])
  const uncached = input === undefined || countsCacheApart ? input : Math.max(0, input - (read ?? 0))
  return counted({ input, uncached, read, written, output: count(told['outputTokens']), reasoning: count(told['reasoningTokens']) })
}

type Counts = Record<'input' | 'uncached' | 'read' | 'written' | 'output' | 'reasoning', number | undefined>

function counted({ input, uncached, read, written, output, reasoning }: Counts): Usage {
  return present({
    input_tokens: input,
    output_tokens: output,
    cached_tokens: read,
    input_uncached: uncached,
    cache_read: read,
    cache_write: written,
    output,
    reasoning,
  })
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
