/** What both dialects of Realtime have in common, in neutral words. */
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import type { Usage } from '../../protocol/usage.ts'
import type { AudioFormat } from './audio/formats.ts'
import type { SameEvent } from './schema.ts'

export type Status = 'in_progress' | 'completed' | 'incomplete'

interface TextPart {
  readonly type: 'text'
  readonly text: string
}
/** A recording: pcm16 in base64, `undefined` after it was dropped. */
interface AudioPart {
  readonly type: 'audio'
  readonly audio: string | undefined
  readonly transcript: string | null
}
interface ImagePart {
  readonly type: 'image'
  readonly url: string
  readonly detail: string | undefined
}
export type Part = TextPart | AudioPart | ImagePart

export interface MessageItem {
  readonly type: 'message'
  readonly id: string
  readonly role: 'user' | 'assistant' | 'system'
  readonly status: Status
  readonly content: readonly Part[]
}
export interface CallItem {
  readonly type: 'function_call'
  readonly id: string
  readonly status: Status
  readonly call_id: string
  readonly name: string
  readonly arguments: string
}
interface CallOutputItem {
  readonly type: 'function_call_output'
  readonly id: string
  readonly status: Status
  readonly call_id: string
  readonly output: string
}
export type Item = MessageItem | CallItem | CallOutputItem

export interface TurnDetection {
  readonly type: 'server_vad' | 'semantic_vad'
  readonly threshold?: number
  readonly prefix_padding_ms?: number
  readonly silence_duration_ms?: number
  readonly create_response?: boolean
  readonly interrupt_response?: boolean
  readonly idle_timeout_ms?: number | null
  readonly eagerness?: string
}

/** What a session is set to. `speaks`: the client wants to hear answers, not only read them. */
export interface Settings {
  readonly speaks: boolean
  readonly instructions: string
  readonly voice: unknown
  readonly speed: number
  readonly inputFormat: AudioFormat
  readonly outputFormat: AudioFormat
  readonly turnDetection: TurnDetection | null
  readonly transcription: Slot | null
  readonly noiseReduction: Slot | null
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice: unknown
  readonly maxOutputTokens: number | 'inf'
  /** Settings that are only told back and handed to the agent: `tracing`, `truncation`, `prompt`, `temperature` … */
  readonly other: Slot
  /** The client wants its answers signed, or not. */
  readonly sign?: boolean
}

/** What one response does differently. */
export interface ResponseRequest {
  readonly changes: Partial<Settings>
  readonly metadata: Slot | null
  /** `none`: the response does not become part of the conversation. */
  readonly conversation: 'auto' | 'none'
  /** Replaces the conversation. A string is the id of one of its items. */
  readonly input: readonly (GivenItem | string)[] | undefined
}

type Given<I extends Item> = Omit<I, 'id' | 'status'> & { readonly id?: string | null | undefined }
/** An item as a client gives it: its audio in the session's format. */
export type GivenItem = Given<MessageItem> | Given<CallItem> | Given<CallOutputItem>

/** What a client asks for. */
export type Command =
  | SameEvent
  | { readonly type: 'session.update'; readonly changes: Partial<Settings> }
  | { readonly type: 'conversation.item.create'; readonly item: GivenItem; readonly previous: string | undefined }
  | { readonly type: 'response.create'; readonly request: ResponseRequest }

/** The state of a response. */
export interface ResponseState {
  readonly id: string
  readonly status: 'in_progress' | 'completed' | 'cancelled' | 'failed' | 'incomplete'
  readonly details: Slot | null
  readonly output: readonly Item[]
  readonly usage: Usage | undefined
  readonly conversationId: string | null
  readonly metadata: Slot | null
  readonly settings: Settings
}

/** An event for the client; its id is added when it is sent. */
export interface Told {
  readonly type: string
  readonly [field: string]: unknown
}

/** One version of the protocol: how it words what clients and server say. Other code does not know which version it speaks. */
export interface Dialect {
  /** Reads an event of the client. Throws if it is wrong. */
  read(event: Slot): Command
  /** The session as it is shown. */
  session(settings: Settings): Slot
  response(state: ResponseState): Slot
  /** `withAudio`: converts the recording. Without it the recording is left out; only `retrieve` shows it. */
  item(item: Item, withAudio?: (audio: string, role: MessageItem['role']) => string): Slot
  /** What its events are called. */
  readonly names: {
    /** An item is in the conversation from now on, and may still grow. */
    readonly added: string
    /** The item does not change any more. The beta has no event for it. */
    readonly finished?: string
    readonly text: string
    readonly audio: string
    readonly transcript: string
  }
}
