import { callDraft, refusalDraft, type AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Usage } from '../../protocol/usage.ts'
import { cutOff, eventData, failureOf } from '../../wire/upstream.ts'
import { kept, newCallId } from './signatures.ts'

/** Gemini API, GenerateContentResponse: the fields that are read. Any of them may be missing. */
interface WireChunk {
  readonly candidates?: readonly WireCandidate[] | null
  readonly promptFeedback?: { readonly blockReason?: string | null; readonly blockReasonMessage?: string | null } | null
  readonly usageMetadata?: WireUsage | null
  readonly error?: unknown
}

interface WireCandidate {
  readonly content?: { readonly parts?: readonly WirePart[] | null } | null
  readonly finishReason?: string | null
  readonly finishMessage?: string | null
}

interface WirePart {
  readonly text?: string
  readonly thought?: boolean
  readonly thoughtSignature?: string
  readonly functionCall?: { readonly id?: string; readonly name?: string; readonly args?: unknown } | null
  readonly inlineData?: { readonly mimeType?: string; readonly data?: string } | null
}

interface WireUsage {
  readonly promptTokenCount?: number
  readonly toolUsePromptTokenCount?: number
  readonly cachedContentTokenCount?: number
  readonly candidatesTokenCount?: number
  readonly thoughtsTokenCount?: number
}

/** Stop reasons that are not failures. `undefined`: the answer is complete. */
const STOPS: Readonly<Record<string, 'length' | 'content_filter' | undefined>> = {
  STOP: undefined,
  MAX_TOKENS: 'length',
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
}

/** Turns the chunks of one answer into drafts. */
export class AnswerStream implements AnswerReader {
  readonly #name: string
  readonly #newId: () => string
  /** A signature ends a thought: the next piece begins another one. */
  #signed = false
  #usage: WireUsage | undefined
  #finish: { readonly reason: string; readonly message: string | undefined } | undefined

  constructor(newId: () => string, name = 'google') {
    this.#name = name
    this.#newId = newId
  }

  get over(): boolean {
    return this.#finish !== undefined
  }

  read(data: string, out: Draft[]): void {
    const { candidates, promptFeedback, usageMetadata, error } = eventData(this.#name, data) as WireChunk
    if (error != null) throw failureOf(this.#name, error)
    if (usageMetadata) this.#usage = usageMetadata
    // A blocked prompt has no candidate.
    const blocked = promptFeedback?.blockReason
    if (blocked != null)
      this.#finish = { reason: 'PROHIBITED_CONTENT', message: promptFeedback?.blockReasonMessage ?? `The prompt was blocked: ${blocked}` }
    const candidate = candidates?.[0]
    for (const part of candidate?.content?.parts ?? []) this.#part(part, out)
    if (candidate?.finishReason != null) this.#finish = { reason: candidate.finishReason, message: candidate.finishMessage ?? undefined }
  }

  usage(out: Draft[]): void {
    if (this.#usage) out.push({ type: 'usage.delta', delta: toUsage(this.#usage) })
    this.#usage = undefined
  }

  /** The stream has no end mark of its own: an answer without a finish reason was cut off. */
  end(out: Draft[]): void {
    this.usage(out)
    if (!this.#finish) throw cutOff(this.#name)
    const { reason, message } = this.#finish
    if (!Object.hasOwn(STOPS, reason)) {
      throw new UampError('provider_error', `${this.#name} stopped: ${message ?? reason}`, { details: { finish_reason: reason } })
    }
    const stop_reason = STOPS[reason]
    if (stop_reason === 'content_filter' && message !== undefined) out.push(refusalDraft(message))
    if (stop_reason) out.push(done({ stop: stop_reason }))
  }

  #part({ text: said, thought, thoughtSignature, functionCall, inlineData }: WirePart, out: Draft[]): void {
    const signature = thoughtSignature === undefined ? undefined : kept(thoughtSignature)
    if (thought) {
      if (said || signature !== undefined) {
        out.push({ type: 'thinking', content: said ?? '', is_delta: !this.#signed, ...(signature !== undefined && { signature }) })
      }
      this.#signed ||= signature !== undefined
      return
    }
    if (signature !== undefined) out.push({ type: 'thinking', content: '', is_delta: false, signature })
    if (said) out.push(text(said))
    if (functionCall) {
      const { id, name = '', args } = functionCall
      out.push(callDraft(id ?? newCallId(this.#newId), name, JSON.stringify(args ?? {})))
    }
    if (inlineData?.data) out.push(...media(inlineData.mimeType ?? '', inlineData.data))
    if (said || functionCall || inlineData) this.#signed = false
  }
}

function media(mime: string, data: string): Draft[] {
  const [kind, rest = ''] = mime.split('/')
  const [format = ''] = rest.split(';')
  if (kind === 'image') return [{ type: 'response.delta', delta: { type: 'image', image: data, format } }]
  // Speech comes as pieces of bare samples.
  if (kind === 'audio')
    return [{ type: 'response.delta', delta: { type: 'audio', audio: data, format: /^(l16|pcm)$/i.test(format) ? 'pcm16' : format } }]
  return []
}

/** UAMP events §8.7: here `input_tokens` includes the cache. Thoughts are output, though Gemini does not count them as candidates. */
function toUsage(wire: WireUsage): Usage {
  const input = (wire.promptTokenCount ?? 0) + (wire.toolUsePromptTokenCount ?? 0)
  const output = (wire.candidatesTokenCount ?? 0) + (wire.thoughtsTokenCount ?? 0)
  const { cachedContentTokenCount: cached, thoughtsTokenCount: reasoning } = wire
  return {
    input_tokens: input,
    output_tokens: output,
    ...(cached !== undefined && { cached_tokens: cached, cache_read: cached }),
    input_uncached: input - (cached ?? 0),
    output,
    ...(reasoning !== undefined && { reasoning }),
  }
}
