/**
 * A language model of the AI SDK, specification v2 (ai 5) or v3 (ai 6), as far as we use it. These are types of our own, so that
 * neither version of the SDK is needed to build or to run this.
 */
export interface AiSdkModel {
  readonly specificationVersion: string
  /** The vendor and its API: `openai.responses`. */
  readonly provider: string
  readonly modelId: string
  /** The URLs that the vendor fetches itself, as patterns by media type. */
  readonly supportedUrls?: UrlPatterns | PromiseLike<UrlPatterns>
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream }>
}

export type UrlPatterns = Readonly<Record<string, readonly RegExp[]>>

export type Fields = Readonly<Record<string, unknown>>

/** What the SDK keeps for the vendor with a part of an answer, by the vendor's name: it has to come back with that part. */
export type Metadata = Readonly<Record<string, Fields>>

/** The parts of the answer that are read. */
export interface StreamPart {
  readonly type: string
  readonly id?: string
  readonly delta?: string
  readonly toolName?: string
  readonly toolCallId?: string
  readonly input?: unknown
  readonly providerExecuted?: boolean
  readonly providerMetadata?: Metadata
  readonly mediaType?: string
  readonly data?: string | Uint8Array
  /** v2: a text; v3: `{ unified, raw }`. */
  readonly finishReason?: unknown
  readonly usage?: unknown
  readonly error?: unknown
}

/** How the vendors of the SDK differ where the SDK does not say so. */
export function traitsOf({ provider, specificationVersion }: Pick<AiSdkModel, 'provider' | 'specificationVersion'>) {
  const isResponses = /^(openai|azure)\.responses/.test(provider)
  return {
    isNew: specificationVersion === 'v3',
    isResponses,
    /** It takes media within a tool's result. The others would be given its base64 as text. */
    resultMedia: isResponses || /^(anthropic|google|vertex|amazon-bedrock)\b/.test(provider),
    /** It takes system messages only at the beginning. */
    systemFirst: /anthropic|bedrock|google|vertex/.test(provider),
    /** In v2 its `inputTokens` leave out what came from the cache. */
    countsCacheApart: /anthropic|bedrock/.test(provider),
  }
}

export type Traits = ReturnType<typeof traitsOf>

const MARK = 'ai-sdk:'

/** What the vendor wants back, as the signature of a thought or the encrypted value of a call. */
export function toSignature(metadata: Metadata): string {
  return MARK + JSON.stringify(metadata)
}

/** False: it is that of another provider in the same conversation. */
export function isOwn(signature: string): boolean {
  return signature.startsWith(MARK)
}

export function fromSignature(signature: string): string | undefined {
  return isOwn(signature) ? signature.slice(MARK.length) : undefined
}
