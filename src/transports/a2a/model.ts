/**
 * What a task, a message and an update are, in the shapes of A2A 1.0 (`lf.a2a.v1`, ProtoJSON). Inside this transport everything is
 * in these; the other generations are translated at their own edge.
 */
import type { KnownCall } from '../../core/ports/transport.ts'
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

interface StatusUpdate {
  readonly taskId: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly metadata?: Struct
}

interface ArtifactUpdate {
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

/** Which generation's shapes a task was made with: `tasks/get` and `tasks/cancel` exist in several. */
export type Generation = '1.0' | '0.3' | '0.2' | '0.1' | 'tasks'

export interface PushConfig {
  readonly id: string
  readonly taskId: string
  readonly url: string
  readonly token?: string
  readonly authentication?: { readonly scheme: string; readonly credentials?: string }
}

export interface SendRequest {
  readonly message: Message
  readonly generation: Generation
  readonly returnImmediately: boolean
  /** Undefined: all. 0: none. */
  readonly historyLength?: number | undefined
  readonly acceptedOutputModes?: readonly string[] | undefined
  readonly push?: Omit<PushConfig, 'id' | 'taskId'> & { readonly id?: string }
  readonly metadata?: Struct | undefined
  /** A task id that the client chose: 0.1 and `POST /tasks` alone. */
  readonly chosenId?: string | undefined
}

export interface ListRequest {
  readonly contextId?: string | undefined
  readonly state?: TaskState | undefined
  /** 1 to 100. */
  readonly pageSize: number
  readonly pageToken?: string | undefined
  readonly historyLength?: number | undefined
  /** Milliseconds since 1970: only tasks whose status is as new or newer. */
  readonly statusAfter?: number | undefined
  readonly includeArtifacts: boolean
}

interface SubscribeRequest {
  readonly id: string
  readonly after?: string | undefined
  /** Until the task is over, also while it waits for its client: A2A 1.0 §3.1.6. */
  readonly stays?: boolean | undefined
}

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** Empty on the last page. */
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

/** How a generation writes an event of a stream. */
export interface StreamVisitor {
  /** More text of the artifact `artifactId`. The frequent one: a template, not an object. `first`: it begins here. */
  text(text: string, place: Place): void
  event(event: StreamEvent, seq: string | undefined): void
}

export interface Place {
  readonly artifactId: string
  readonly first: boolean
  /** What `Last-Event-ID` may bring back. */
  readonly seq: string | undefined
}

export interface StreamBatch {
  visit(visitor: StreamVisitor): void
}

/** The events of one task from here on. What the iterator returns belongs into one write with the end. */
export interface TaskStream {
  readonly taskId: string
  readonly contextId: string
  readonly batches: AsyncIterable<StreamBatch, StreamBatch | void>
}

/** What every binding of every generation calls. Whoever does not own a task gets `TASK_NOT_FOUND`. Throws what `errors.ts` makes. */
export interface Tasks {
  send(call: KnownCall, request: SendRequest): Promise<SendResult>
  stream(call: KnownCall, request: SendRequest): Promise<TaskStream>
  get(call: KnownCall, request: { readonly id: string; readonly historyLength?: number | undefined }): Promise<Task>
  /** The generation that made it. */
  generationOf(call: KnownCall, id: string): Promise<Generation>
  stateOf(call: KnownCall, id: string): Promise<TaskState>
  list(call: KnownCall, request: ListRequest): Promise<TaskPage>
  cancel(call: KnownCall, request: { readonly id: string; readonly metadata?: Struct | undefined }): Promise<Task>
  /** The first event is the task, unless `after` says which one was the last that the client has. */
  subscribe(call: KnownCall, request: SubscribeRequest): Promise<TaskStream>
}

/** Where each task's updates are posted to. Every call checks first that the task is the caller's. */
export interface PushConfigs {
  set(call: KnownCall, config: Omit<PushConfig, 'id'> & { readonly id?: string }): Promise<PushConfig>
  get(call: KnownCall, request: { readonly taskId: string; readonly id?: string | undefined }): Promise<PushConfig>
  list(
    call: KnownCall,
    request: { readonly taskId: string; readonly pageSize?: number | undefined; readonly pageToken?: string | undefined },
  ): Promise<{ readonly configs: readonly PushConfig[]; readonly nextPageToken: string }>
  delete(call: KnownCall, request: { readonly taskId: string; readonly id: string }): Promise<void>
}
