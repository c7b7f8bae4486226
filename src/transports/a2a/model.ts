/**
 * Tasks, messages and updates in the shapes of A2A 1.0 (`lf.a2a.v1`, ProtoJSON). Inside this transport everything has these shapes;
 * `dialects/` translates the other generations.
 */
import type { Json } from '../../protocol/json.ts'
import type { Part as AnyPart } from '../../wire/a2a/parts.ts'
import type { TaskState } from '../../wire/a2a/states.ts'

export { TERMINAL, type TaskState } from '../../wire/a2a/states.ts'

export type Struct = Readonly<Record<string, Json>>

export interface Part extends AnyPart {
  readonly data?: Json
  readonly metadata?: Struct
}

export interface Message {
  readonly messageId: string
  readonly role: 'ROLE_USER' | 'ROLE_AGENT'
  readonly parts: readonly Part[]
  readonly contextId?: string
  readonly taskId?: string
  readonly metadata?: Struct
  readonly extensions?: readonly string[]
  readonly referenceTaskIds?: readonly string[]
}

export interface TaskStatus {
  readonly state: TaskState
  readonly message?: Message
  /** ISO 8601, UTC, with milliseconds. */
  readonly timestamp: string
}

export interface Artifact {
  readonly artifactId: string
  readonly name?: string
  readonly description?: string
  readonly parts: readonly Part[]
  readonly metadata?: Struct
  readonly extensions?: readonly string[]
}

export interface Task {
  readonly id: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly artifacts?: readonly Artifact[]
  readonly history?: readonly Message[]
  readonly metadata?: Struct
}

export interface StatusUpdate {
  readonly taskId: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly metadata?: Struct
}

export interface ArtifactUpdate {
  readonly taskId: string
  readonly contextId: string
  readonly artifact: Artifact
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly metadata?: Struct
}

/** One event of a stream, and the body of a push notification. */
export type StreamEvent =
  | { readonly task: Task }
  | { readonly message: Message }
  | { readonly statusUpdate: StatusUpdate }
  | { readonly artifactUpdate: ArtifactUpdate }

/** What `SendMessage` answers. */
export type SendResult = { readonly task: Task } | { readonly message: Message }

/** The generation that a task was made with: `tasks/get` and `tasks/cancel` exist in several, and show it in the shapes of that one. */
export type Generation = '1.0' | '0.3' | '0.2' | '0.1' | 'tasks'

export interface PushConfig {
  readonly id: string
  readonly taskId: string
  readonly url: string
  readonly token?: string
  readonly authentication?: { readonly scheme: string; readonly credentials?: string }
}

/** The server chooses an id where the client gives none. */
export type NewPushConfig = Omit<PushConfig, 'id'> & { readonly id?: string }

export interface SendRequest {
  readonly message: Message
  readonly generation: Generation
  readonly returnImmediately: boolean
  /** Undefined: all. 0: none. */
  readonly historyLength?: number | undefined
  readonly acceptedOutputModes?: readonly string[] | undefined
  readonly push?: Omit<NewPushConfig, 'taskId'>
  readonly metadata?: Struct | undefined
  /** A task id that the client chose, in 0.1 and `POST /tasks`. */
  readonly chosenId?: string | undefined
}

export interface ListRequest {
  readonly contextId?: string | undefined
  readonly state?: TaskState | undefined
  /** 1 to 100. */
  readonly pageSize: number
  readonly pageToken?: string | undefined
  readonly historyLength?: number | undefined
  /** Milliseconds since 1970. Only tasks whose status is as new or newer are listed. */
  readonly statusAfter?: number | undefined
  readonly includeArtifacts: boolean
}

export interface SubscribeRequest {
  readonly id: string
  /** The last event that the client has. Without it, the first event is the task. */
  readonly after?: string | undefined
  /**
   * A2A 1.0 §3.1.6: the stream stays until the task is over, also while it waits for its client, and a task that is over has none.
   * Earlier generations have no such rule: there a client that lost its connection just before the end gets the task as it is.
   */
  readonly stays: boolean
}

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** Empty on the last page. */
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

export interface StreamVisitor {
  /** More text of an artifact. By far the most frequent, so no event is made of it. */
  text(text: string, place: Place): void
  event(event: StreamEvent, seq: string | undefined): void
}

export interface Place {
  readonly artifactId: string
  /** The artifact begins here. */
  readonly first: boolean
  /** The id of the event, which `Last-Event-ID` may bring back. */
  readonly seq: string | undefined
}

export interface StreamBatch {
  visit(visitor: StreamVisitor): void
}

/** The events of one task from here on. The batch that the iterator returns is written in one piece with the end. */
export interface TaskStream {
  readonly taskId: string
  readonly contextId: string
  readonly batches: AsyncIterable<StreamBatch, StreamBatch | void>
}
