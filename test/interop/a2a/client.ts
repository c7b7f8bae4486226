/** What tests ask of a client of any generation, and what it gives back, in one form. Each generation's file translates its own. */

export type SeenPart = { readonly text: string } | { readonly data: unknown } | SeenFile

/** `bytes` in base64, or `url`. */
interface SeenFile {
  readonly bytes?: string
  readonly url?: string
  readonly name?: string
  readonly type?: string
}

export interface SeenArtifact {
  readonly id: string
  readonly parts: readonly SeenPart[]
}

export interface SeenMessage {
  readonly id: string
  readonly role: 'user' | 'agent'
  readonly parts: readonly SeenPart[]
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface SeenTask {
  readonly id: string
  readonly context: string
  /** As 0.3 calls it: `input-required`. */
  readonly state: string
  /** The message of its status. */
  readonly says?: SeenMessage
  readonly artifacts: readonly SeenArtifact[]
  readonly history: readonly SeenMessage[]
}

export type Update =
  | { readonly task: SeenTask }
  | { readonly message: SeenMessage }
  | { readonly status: Pick<SeenTask, 'id' | 'state' | 'says'> }
  | { readonly chunk: SeenArtifact; readonly append: boolean; readonly last: boolean }

export type Answer = { readonly task: SeenTask } | { readonly message: SeenMessage }

export interface Said {
  readonly parts: readonly SeenPart[]
  readonly messageId?: string
  readonly task?: string
  readonly context?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface SendOptions {
  /** Default: until the task is over, or asks. */
  readonly wait?: boolean
  readonly historyLength?: number
  readonly push?: Push
}

export interface Push {
  readonly id?: string
  readonly url: string
  readonly token?: string
}

export interface Client {
  /** From the card that it found. */
  readonly card: { readonly name: string; readonly description: string; readonly streaming: boolean; readonly push: boolean }
  send(said: Said, options?: SendOptions): Promise<Answer>
  stream(said: Said): AsyncIterable<Update>
  get(id: string, historyLength?: number): Promise<SeenTask>
  cancel(id: string): Promise<SeenTask>
  subscribe(id: string): AsyncIterable<Update>
  setPush(task: string, push: Push): Promise<Push>
  getPush(task: string, id: string): Promise<Push>
  /** The generations that have them. */
  listPush?(task: string): Promise<readonly Push[]>
  deletePush?(task: string, id: string): Promise<void>
  /** The class of the error that the client threw, of those that it has for A2A's own. */
  kindOf(thrown: unknown): string
}

export interface Generation {
  readonly name: string
  readonly version: '1.0' | '0.3' | '0.2'
  /** What the client itself loses on the way: it does not read `append` and the names of files, and cannot ask for no history. */
  readonly loses?: true
  /** `base` is the server's address, or an agent's on it, without a slash at the end. */
  connect(base: string): Promise<Client>
}

export const say = (text: string): Said => ({ parts: [{ text }] })

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The task of an answer that has to be one. */
export function taskOf(answer: Answer): SeenTask {
  if ('task' in answer) return answer.task
  throw new Error(`A message came, not a task: ${JSON.stringify(answer)}`)
}

/** What a stream has to begin with. */
export function firstTask([first]: readonly Update[]): SeenTask {
  if (first && 'task' in first) return first.task
  throw new Error(`The stream does not begin with the task: ${JSON.stringify(first)}`)
}

/** All text of a task's artifacts, or of the chunks of a stream. */
export function textOf(parts: readonly SeenPart[]): string {
  return parts.map((part) => ('text' in part ? part.text : '')).join('')
}

export function artifactText({ artifacts }: SeenTask): string {
  return textOf(artifacts.flatMap(({ parts }) => parts))
}

/** What the chunks of a stream add up to. */
export function assembled(updates: readonly Update[]): string {
  return textOf(updates.flatMap((update) => ('chunk' in update ? update.chunk.parts : [])))
}

/** The names of the states that a stream went through, each once. */
export function statesOf(updates: readonly Update[]): string[] {
  const states = updates.flatMap((update) => ('task' in update ? [update.task.state] : 'status' in update ? [update.status.state] : []))
  return states.filter((state, index) => state !== states[index - 1])
}

/** Calls that must be refused, with the class of the error that says so. */
export async function refusal(client: Client, call: Promise<unknown>): Promise<string> {
  return call.then(
    (value) => `answered: ${JSON.stringify(value)}`,
    (thrown: unknown) => client.kindOf(thrown),
  )
}
