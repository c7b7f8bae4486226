import type { HttpClient } from '../../core/ports/http.ts'
import type { Timeouts } from '../../upstream/upstream.ts'

/** The field in which a server sends thoughts, and wants them back. */
export type ReasoningField = 'reasoning_content' | 'reasoning'

export type InputKind = 'image' | 'image_url' | 'audio' | 'file' | 'text_file'

/** Facts about a model. One entry may stand for all names that begin like its own. */
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
   * What it takes beside text. `image_url`: images that it fetches itself. `text_file`: files of text, which others get as plain text.
   * Anything else is described to the model in words.
   */
  readonly input?: readonly InputKind[]
  /** Its models can answer in audio on request. Default: false. */
  readonly speech?: boolean
  /** The field for thoughts in messages with tool calls. Default: the field in which the server sent them. */
  readonly reasoningField?: ReasoningField
  /** Text that begins with `<think>` is a thought up to `</think>`. Default: true. */
  readonly thinkTags?: boolean
  /** The server takes a JSON Schema. If not, the model is told of it in words, beside `json_object`. Default: true. */
  readonly jsonSchema?: boolean
  /** `max_tokens`, which all servers know, or the newer name. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens'
  /** The header for a hash of the session id, so that all requests of a session reach the same cache. */
  readonly affinityHeader?: string
  /** Fields that a turn may set under `extensions.<name>`, beside those that all servers have. */
  readonly settings?: readonly string[]
  /** Fields that turn thinking off, where the effort `none` does not. */
  readonly thinkingOff?: Readonly<Record<string, unknown>>
}

export interface OpenAiCompatibleOptions extends Dialect {
  /** Its name in settings, capabilities and error messages. */
  readonly name: string
  /** The address without `/chat/completions`. */
  readonly baseUrl: string
  readonly apiKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Fields that are added to every request. */
  readonly defaults?: Readonly<Record<string, unknown>>
  readonly models?: Readonly<Record<string, ModelFacts>>
  /** If set, `GET /models` is asked what a model can do. */
  readonly http?: HttpClient
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
  /** Requests may have effects: one is sent again only if it surely did not begin. Default: false. */
  readonly once?: boolean
  readonly newId?: () => string
}
