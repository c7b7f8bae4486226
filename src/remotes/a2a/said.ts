import * as z from 'zod/mini'
import type { MediaItem } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { draftIn, type Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import { Delta } from '../../protocol/server-events.ts'
import { mediaItemOf } from '../../wire/a2a/content.ts'
import { EVENTS_EXTENSION } from '../../wire/a2a/extensions.ts'
import type { Part } from '../../wire/a2a/parts.ts'
import type { Artifact, Message, Told, ToldTask } from './model.ts'

/** Artifacts of one task. A task with more fails. */
const ARTIFACTS = 10_000
/** Messages that are remembered, so that none is told twice. Of more, the oldest are forgotten. */
const MESSAGES = 1_000

/** What we have told of one artifact, and how much of it the other side has sent since it last began. */
interface Telling {
  text: string
  /** Where the next piece begins. Before the end of `text` the piece repeats what was told. */
  at: number
  readonly media: Part[]
  mediaAt: number
}

/**
 * Makes events of what an agent says, each thing once: pieces of an artifact are passed on as they come, and of a task that repeats
 * them all (at its end, after a lost connection, with the next message) only what is missing.
 */
export class Said {
  readonly #newId: () => string
  readonly #artifacts = new Map<string, Telling>()
  readonly #messages = new Set<string>()
  /** The source of the last text. Text of another source begins a paragraph. */
  #last: string | undefined
  #text = ''
  /** A message while the task works. If nothing else comes, it is the answer. */
  #note: Message | undefined
  #media = 0

  constructor(newId: () => string) {
    this.#newId = newId
  }

  get text(): string {
    return this.#text
  }

  /** Remembers a task without telling anything of it, because an earlier turn told it. */
  skip(task: ToldTask): void {
    const [last, text, media] = [this.#last, this.#text, this.#media]
    this.take(task, [])
    if (task.status.message) this.#isNew(task.status.message)
    this.#last = last
    this.#text = text
    this.#media = media
    this.#note = undefined
  }

  take(told: Told, out: Draft[]): void {
    switch (told.kind) {
      case 'artifact':
        return this.#artifact(told.artifact, told.append, out)
      case 'message':
        return this.message(told.message, out)
      case 'task':
        for (const artifact of told.artifacts) this.#artifact(artifact, false, out)
        return this.#status(told, out)
      case 'status':
        return this.#status(told, out)
    }
  }

  /** What a message says, if it was not said before. */
  message(message: Message, out: Draft[]): void {
    if (!this.#isNew(message)) return
    const { parts } = message
    const text = textIn(parts)
    // An agent may repeat at the end what its artifacts said.
    if (text.trim() !== '' && !this.#text.trimEnd().endsWith(text.trim())) this.#say(text, `message ${message.id ?? this.#newId()}`, out)
    for (const part of parts) if (isMedia(part) && !this.#knows(part)) this.#show(part, {}, out)
  }

  /** The task is done. If there is no other answer, it is the last message while the task worked, or the last of the history. */
  end(history: readonly Message[], out: Draft[]): void {
    if (this.#text !== '' || this.#media > 0) return
    const last = history.at(-1)
    const message = this.#note ?? (last?.role === 'agent' ? last : undefined)
    if (!message) return
    if (message.id !== undefined) this.#messages.delete(message.id)
    this.message(message, out)
  }

  /** A message while the task works is progress and no piece of the answer. */
  #status({ status }: Extract<Told, { kind: 'task' | 'status' }>, out: Draft[]): void {
    const { state, message } = status
    if (!message || (state !== 'working' && state !== 'submitted' && state !== 'unknown') || !this.#isNew(message)) return
    const extras = extrasIn(message)
    if (extras) return void out.push(...extras)
    this.#note = message
    const text = textIn(message.parts)
    if (text !== '') out.push({ type: 'progress', target: 'response', stage: 'working', message: text })
  }

  #isNew({ id, parts }: Message): boolean {
    const key = id ?? JSON.stringify(parts)
    if (this.#messages.has(key)) return false
    this.#messages.add(key)
    if (this.#messages.size > MESSAGES) for (const oldest of this.#messages.values()) return this.#messages.delete(oldest)
    return true
  }

  #artifact(artifact: Artifact, append: boolean, out: Draft[]): void {
    const { id, name, description } = artifact
    const telling = this.#artifacts.get(id) ?? { text: '', at: 0, media: [], mediaAt: 0 }
    this.#artifacts.set(id, telling)
    if (this.#artifacts.size > ARTIFACTS) throw new UampError('provider_error', `The remote agent made more than ${ARTIFACTS} artifacts`)
    const text = textIn(artifact.parts)
    if (!append) {
      if (!telling.text.startsWith(text.slice(0, telling.text.length))) {
        // The agent has replaced the text. What was told of the old one cannot be taken back.
        telling.text = ''
        this.#last = ''
      }
      telling.at = telling.mediaAt = 0
    }
    this.#extend(telling, { text, source: `artifact ${id}` }, out)
    for (const part of artifact.parts) {
      if (!isMedia(part)) continue
      const known = telling.media[telling.mediaAt++]
      if (known && isSame(known, part)) continue
      telling.media[telling.mediaAt - 1] = part
      this.#show(part, { ...(name !== undefined && { name }), ...(description !== undefined && { description }) }, out)
    }
  }

  #extend(telling: Telling, { text, source }: { readonly text: string; readonly source: string }, out: Draft[]): void {
    const { at } = telling
    const known = telling.text.slice(at, at + text.length)
    const rest = known !== '' && text.startsWith(known) ? text.slice(known.length) : text
    telling.at = at + text.length
    if (rest === '') return
    telling.text = rest === text ? telling.text + text : telling.text.slice(0, at) + text
    if (rest === text) telling.at = telling.text.length
    this.#say(rest, source, out)
  }

  #say(text: string, source: string, out: Draft[]): void {
    if (text === '') return
    const apart = this.#last !== undefined && this.#last !== source ? '\n\n' : ''
    this.#last = source
    this.#text += apart + text
    out.push({ type: 'response.delta', delta: { type: 'text', text: apart + text } })
  }

  #knows(part: Part): boolean {
    for (const { media } of this.#artifacts.values()) if (media.some((known) => isSame(known, part))) return true
    return false
  }

  #show(part: Part, about: { readonly name?: string; readonly description?: string }, out: Draft[]): void {
    this.#media++
    const { description } = about
    const item = itemOf(part, about.name)
    out.push({ type: 'response.delta', delta: { ...item, content_id: this.#newId(), ...(description !== undefined && { description }) } })
  }
}

/** Events that belong to our session, or that the task itself tells. */
const OTHERS =
  /^(session\.|rate_limit$|response\.(created|done|error|cancelled)|pong$|x\.ack$|tool\.call$|x\.approval\.request$|payment\.required$)/

/** The events in a message of our extension; undefined for any other message. */
function extrasIn({ extensions, parts }: Message): readonly Draft[] | undefined {
  if (!extensions.includes(EVENTS_EXTENSION)) return undefined
  return parts.flatMap(({ data }) => draftOf(data) ?? [])
}

function draftOf(data: unknown): Draft | undefined {
  if (!isRecord(data) || typeof data['type'] !== 'string' || OTHERS.test(data['type'])) return undefined
  const delta = z.safeParse(Delta, data)
  // What is no delta is an event of its own, such as a thought.
  if (delta.success) return { type: 'response.delta', delta: delta.data }
  const { timestamp: _, ...fields } = data
  return draftIn(fields)
}

export function textIn(parts: readonly Part[]): string {
  let text = ''
  for (const part of parts) text += part.text ?? ''
  return text
}

function isMedia(part: Part): boolean {
  return part.text === undefined
}

function isSame(a: Part, b: Part): boolean {
  if (a.data !== undefined || b.data !== undefined) return JSON.stringify(a.data) === JSON.stringify(b.data)
  return a.raw === b.raw && a.url === b.url && a.filename === b.filename
}

function itemOf(part: Part, name: string | undefined): MediaItem {
  const item = mediaItemOf(part, name)
  if (item.type === 'audio' && item.format === 'mpeg') return { ...item, format: 'mp3' }
  return item.type === 'image' && part.filename !== undefined ? { ...item, alt_text: part.filename } : item
}
