import { parseJson } from '../../../protocol/json.ts'
import { fromBase64 } from '../../../protocol/base64.ts'
import { isMedia, type ContentItem, type MediaItem } from '../../../protocol/content.ts'
import type { Json } from '../../../protocol/json.ts'
import { mediaSource } from '../../../wire/media-source.ts'
import type { Artifact, Part, Place, StreamEvent, StreamVisitor } from '../model.ts'
import { JSON_TYPE } from './content-in.ts'

/** All text of one response is one artifact. Every chunk carries its id, so it is that of the response without its prefix. */
export function textArtifactId(turn: string): string {
  return turn.slice(turn.indexOf('_') + 1)
}

/** What a finished response gave. `quiet`: its text is the message of its status, and no artifact. */
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
    // What is appended to one is text, and empty: its end.
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
    // Who only reads has the words of what is spoken.
    parts: [partOf(item), ...(item.type === 'audio' && item.transcript ? [{ text: item.transcript }] : [])],
  }
}

function partOf(item: MediaItem): Part {
  const named = item.type === 'file' ? { filename: item.filename } : {}
  const found = mediaSource(item)
  if (found && 'data' in found) {
    const data = item.type === 'file' && found.mime.split(';')[0] === JSON_TYPE ? parsed(found.data) : undefined
    if (data !== undefined) return { data, mediaType: found.mime, ...named }
    return { raw: found.data, mediaType: found.mime, ...named }
  }
  if (found) return { url: found.url, mediaType: found.mime, ...named }
  // Only this server can find it; whoever asks for it here gets it.
  const source = item.type === 'image' ? item.image : item.type === 'audio' ? item.audio : item.type === 'video' ? item.video : item.file
  return typeof source === 'string' ? { raw: source, ...named } : { url: source.url, ...named }
}

function parsed(encoded: string): Json | undefined {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(encoded))) as Json
  } catch {
    return undefined
  }
}
