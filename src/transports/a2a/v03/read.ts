/** From what clients of A2A 0.2 and 0.3 send to the shapes of 1.0. */
import { isRecord } from '../../../protocol/json.ts'
import { SLOT, WRAPPED } from '../../../wire/a2a/parts.ts'
import type { Message, Part, PushConfig, SendRequest, Struct } from '../model.ts'
import { bytesOf, uriOf, type File, type LoosePart, type Message as WireMessage, type MessageSendParams, type Push } from './schema.ts'

/** `exactOptionalPropertyTypes` and JSON alike: what is not there is left out. */
export function given<K extends string, V>(key: K, value: V | null | undefined): { readonly [P in K]?: V } {
  return (value == null || value === '' ? {} : { [key]: value }) as { readonly [P in K]?: V }
}

export function toPart(part: LoosePart): Part {
  switch (part.kind) {
    case 'text':
      return { text: part.text, ...unslotted(part.metadata) }
    case 'file':
      return { ...toFile(part.file), ...given('metadata', part.metadata) }
    case 'data': {
      const { data, metadata } = part
      const mimeType = 'mimeType' in part ? part.mimeType : undefined
      if (typeof data === 'string') return { raw: data, ...given('mediaType', mimeType), ...given('metadata', metadata) }
      const { [WRAPPED]: wrapped, ...rest } = metadata ?? {}
      if (wrapped !== true || !isRecord(data) || !('value' in data))
        return { data, ...given('mediaType', mimeType), ...unslotted(metadata) }
      return { data: (data as Struct)['value'] ?? null, ...unslotted(Object.keys(rest).length === 0 ? undefined : rest) }
    }
  }
}

function toFile(file: File): Part {
  const uri = uriOf(file)
  return {
    ...(uri === undefined ? { raw: bytesOf(file) ?? '' } : { url: uri }),
    ...given('filename', file.name),
    ...given('mediaType', file.mimeType),
  }
}

/** What `write.ts` put into the slot comes out of it again. */
function unslotted(metadata: Struct | null | undefined): Pick<Part, 'metadata' | 'filename' | 'mediaType'> {
  const slot = metadata?.[SLOT]
  if (metadata == null || !isRecord(slot)) return given('metadata', metadata)
  const { filename, mediaType, ...others } = slot
  const { [SLOT]: _, ...rest } = metadata
  const left: Struct = Object.keys(others).length === 0 ? rest : { ...rest, [SLOT]: others as Struct }
  return {
    ...(typeof filename === 'string' && { filename }),
    ...(typeof mediaType === 'string' && { mediaType }),
    ...(Object.keys(left).length > 0 && { metadata: left }),
  }
}

export function toMessage(message: WireMessage): Message {
  const { messageId, parts, contextId, taskId, metadata, extensions, referenceTaskIds } = message
  return {
    messageId,
    role: 'ROLE_USER',
    parts: parts.map(toPart),
    ...given('contextId', contextId),
    ...given('taskId', taskId),
    ...given('metadata', metadata),
    ...given('extensions', extensions),
    ...given('referenceTaskIds', referenceTaskIds),
  }
}

/** Several schemes are a choice; the first is taken. */
export function toPush({ id, url, token, authentication }: Push): Omit<PushConfig, 'id' | 'taskId'> & { readonly id?: string } {
  const scheme = authentication?.schemes?.[0]
  return {
    url,
    ...given('id', id),
    ...given('token', token),
    ...(scheme !== undefined && { authentication: { scheme, ...given('credentials', authentication?.credentials) } }),
  }
}

/** Who does not say whether to block is kept waiting: so did the official servers of 0.2 and 0.3, and their clients expect it. */
export function toSendRequest({ message, configuration, metadata }: MessageSendParams): SendRequest {
  const { acceptedOutputModes, historyLength, pushNotificationConfig, blocking } = configuration ?? {}
  return {
    message: toMessage(message),
    generation: '0.3',
    returnImmediately: blocking === false,
    ...given('historyLength', historyLength),
    ...given('acceptedOutputModes', acceptedOutputModes),
    ...(pushNotificationConfig != null && { push: toPush(pushNotificationConfig) }),
    ...given('metadata', metadata),
  }
}
