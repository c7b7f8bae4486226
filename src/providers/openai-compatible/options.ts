import type { HttpClient } from '../../core/ports/http.ts'
import type { Timeouts } from '../../upstream/upstream.ts'

/** The field in which a server tells its thoughts, and wants them back. */
export type ReasoningField = 'reasoning_content' | 'reasoning'

export type InputKind = 'image' | 'image_url' | 'audio' | 'file' | 'text_file'

/** What is known of a model beforehand. Its name may be the beginning of several. */
export interface ModelFacts {
  readonly context_window?: number
  readonly max_output_tokens?: number
  readonly thinking?: boolean
  readonly tools?: boolean
  readonly input?: readonly InputKind[]
  /** It can answer in audio. */
  readonly speech?: boolean
}

/** How one server differs from the others that speak Chat Completions. */
export interface Dialect {
  /**
   * What it takes beside text; `image_url` are images that it fetches itself; files of text are told as
   * text unless it takes a `text_file`. Anything else is named to the model in words.
   */
  readonly input?: readonly InputKind[]
  /** Its models can answer in audio, to who asks for it. Default false. */
  readonly speech?: boolean
  /** Where thoughts go back, on messages with tool calls. By default where the server told them, if it did. */
  readonly reasoningField?: ReasoningField
  /** Text that begins with `<think>` is a thought up to `</think>`. Default true. */
  readonly thinkTags?: boolean
  /** Without them a schema is told in words, beside `json_object`. Default true. */
  readonly jsonSchema?: boolean
  /** `max_tokens`, which all know, or the newer name. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens'
  /** The header that carries a hash of the session's id, so that its requests meet the same cache. */
  readonly affinityHeader?: string
  /** Fields that may be set for one turn under `extensions.<name>`, beside those that all servers have. */
  readonly settings?: readonly string[]
  /** How "do not think" is said, where it is no effort. */
  readonly thinkingOff?: Readonly<Record<string, unknown>>
}

export interface OpenAiCompatibleOptions extends Dialect {
  /** What it is called in settings, capabilities and messages. */
  readonly name: string
  /** Up to and without `/chat/completions`. */
  readonly baseUrl: string
  readonly apiKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Fields of every request, as they are. */
  readonly defaults?: Readonly<Record<string, unknown>>
  readonly models?: Readonly<Record<string, ModelFacts>>
  /** With it, `GET /models` is asked what a model can do. */
  readonly http?: HttpClient
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
  /** A request may have effects: it is sent again only where it surely did not begin. Default false. */
  readonly once?: boolean
  readonly newId?: () => string
}
