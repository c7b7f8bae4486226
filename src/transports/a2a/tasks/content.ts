/** What parts of messages and artifacts are here, and back. */
import { isMedia, type ContentItem, type MediaItem } from '../../../protocol/content.ts'
import { dataIn, JSON_TYPE, mediaItemOf, partOf } from '../../../wire/a2a/content.ts'
import type { Artifact, Part, Place, StreamEvent, StreamVisitor } from '../model.ts'

/** What a client says, as content of ours. */
export function toItem(part: Part): ContentItem {
  const { text, filename } = part
  if (text !== undefined) return { type: 'text', text }
  const item = mediaItemOf(part)
  return item.type === 'file' || filename === undefined ? item : { ...item, description: filename }
}

/** All text of one response is one artifact. Every chunk carries its id, which is that of the response without the prefix. */
export function textArtifactId(turn: string): string {
  return turn.slice(turn.indexOf('_') + 1)
}

/** What a finished response gave. `quiet`: its text is the message of its status and no artifact. */
export function artifactsOf(turn: string, output: readonly ContentItem[], quiet = false): Artifact[] {
  const gathered = new Gathering()
  for (const item of output) {
    if (item.type === 'text' && !quiet) gathered.add(textArtifactId(turn), item.text)
    else if (isMedia(item)) gathered.put(mediaArtifact(item))
  }
  return gathered.artifacts()
}

/** Text that comes in pieces, and whole artifacts between them, in the order in which they began. Also reads a stream. */
export class Gathering implements StreamVisitor {
  readonly #artifacts: (Artifact | { readonly artifactId: string; readonly pieces: string[] })[] = []

  add(artifactId: string, text: string): void {
    const last = this.#artifacts.findLast((artifact) => artifact.artifactId === artifactId)
    if (last && 'pieces' in last) last.pieces.push(text)
    else this.#artifacts.push({ artifactId, pieces: [text] })
  }

  put(artifact: Artifact): void {
    this.#artifacts.push(artifact)
  }

  text(text: string, { artifactId }: Place): void {
    this.add(artifactId, text)
  }

  event(event: StreamEvent): void {
    // Only the empty text at the end of an artifact is appended.
    if ('artifactUpdate' in event && !event.artifactUpdate.append) this.put(event.artifactUpdate.artifact)
  }

  artifacts(): Artifact[] {
    return this.#artifacts.map((artifact) =>
      'pieces' in artifact ? { artifactId: artifact.artifactId, parts: [{ text: artifact.pieces.join('') }] } : artifact,
    )
  }
}

/** A piece of media is an artifact of its own, known by its content id. */
export function mediaArtifact(item: MediaItem): Artifact {
  const name = item.type === 'file' ? item.filename : undefined
  const { description } = item
  return {
    artifactId: item.content_id ?? '',
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    // The words of speech, for those who only read.
    parts: [shown(item), ...(item.type === 'audio' && item.transcript ? [{ text: item.transcript }] : [])],
  }
}

function shown(item: MediaItem): Part {
  const part = partOf(item)
  if (part) {
    const isJson = item.type === 'file' && part.mediaType?.split(';')[0] === JSON_TYPE
    const data = isJson && part.raw !== undefined ? dataIn(part.raw) : undefined
    const { raw: _, ...about } = part
    return (data === undefined ? part : { ...about, data }) as Part
  }
  // Only this server can find it; a client that asks here for its address gets it.
  const named = item.type === 'file' ? { filename: item.filename } : {}
  const source = item.type === 'image' ? item.image : item.type === 'audio' ? item.audio : item.type === 'video' ? item.video : item.file
  return typeof source === 'string' ? { raw: source, ...named } : { url: source.url, ...named }
}
