/** What the generations before 1.0 have in common when they write tasks and their updates. */
import {
  TERMINAL,
  type Artifact,
  type ArtifactUpdate,
  type Message,
  type StatusUpdate,
  type Task,
  type TaskState,
  type TaskStatus,
} from '../model.ts'

/** How a generation writes what tasks are made of. `index`: the place of an artifact in its task. */
export interface Words {
  message(message: Message): object
  artifact(artifact: Artifact, index: number): object
  state(state: TaskState): string
}

export function statusIn(words: Words, { state, message, timestamp }: TaskStatus): object {
  return { state: words.state(state), ...(message && { message: words.message(message) }), timestamp }
}

export function taskIn(words: Words, { status, artifacts, history, ...rest }: Task): object {
  return {
    ...rest,
    status: statusIn(words, status),
    ...(artifacts && { artifacts: artifacts.map((artifact, index) => words.artifact(artifact, index)) }),
    ...(history && { history: history.map((message) => words.message(message)) }),
  }
}

export function statusUpdateIn(words: Words, { status, ...rest }: StatusUpdate): object {
  return { ...rest, status: statusIn(words, status), final: isFinal(status.state) }
}

export function artifactUpdateIn(words: Words, { artifact, ...rest }: ArtifactUpdate): object {
  return { ...rest, artifact: words.artifact(artifact, 0) }
}

/** Whether a status ends the stream. While somebody signs in elsewhere the stream stays open. */
export function isFinal(state: TaskState): boolean {
  return TERMINAL.has(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}
