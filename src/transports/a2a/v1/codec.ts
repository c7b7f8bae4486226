/** Requests of A2A 1.0 as the transport's own. Answers need no codec: inside, everything is in the shapes of 1.0 already. */
import type { ListRequest, Message, Part, PushConfig, SendRequest, Struct } from '../model.ts'
import { PAGE_SIZE } from './schema.ts'
import type * as wire from './schema.ts'

export function toSendRequest({ message, configuration, metadata }: wire.SendMessageRequest): SendRequest {
  const { acceptedOutputModes, taskPushNotificationConfig, historyLength, returnImmediately } = configuration ?? {}
  return {
    message: toMessage(message),
    generation: '1.0',
    returnImmediately: returnImmediately ?? false,
    historyLength: historyLength ?? undefined,
    acceptedOutputModes: acceptedOutputModes ?? undefined,
    metadata: slot(metadata),
    ...(taskPushNotificationConfig && { push: toPushConfig(taskPushNotificationConfig) }),
  }
}

export function toListRequest(request: wire.ListTasksRequest): ListRequest {
  const { contextId, status, pageSize, pageToken, historyLength, statusTimestampAfter, includeArtifacts } = request
  return {
    contextId: contextId || undefined,
    state: status === 'TASK_STATE_UNSPECIFIED' ? undefined : (status ?? undefined),
    pageSize: pageSize ?? PAGE_SIZE,
    pageToken: pageToken || undefined,
    historyLength: historyLength ?? undefined,
    statusAfter: statusTimestampAfter ? Date.parse(statusTimestampAfter) : undefined,
    includeArtifacts: includeArtifacts ?? false,
  }
}

export function toPushConfig({
  id,
  url,
  token,
  authentication,
}: wire.PushConfigFields): Omit<PushConfig, 'id' | 'taskId'> & { id?: string } {
  const { scheme, credentials } = authentication ?? {}
  return {
    url,
    ...(id && { id }),
    ...(token && { token }),
    ...(scheme && { authentication: { scheme, ...(credentials && { credentials }) } }),
  }
}

/** An empty text is what ProtoJSON has for a field that is not set. */
function toMessage({ messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds }: wire.Message): Message {
  return {
    messageId,
    role,
    parts: parts.map(toPart),
    ...(contextId && { contextId }),
    ...(taskId && { taskId }),
    ...(metadata && { metadata: metadata as Struct }),
    ...(extensions && { extensions }),
    ...(referenceTaskIds && { referenceTaskIds }),
  }
}

function toPart({ text, raw, url, data, filename, mediaType, metadata }: wire.Part): Part {
  return {
    ...(typeof text === 'string' && { text }),
    ...(typeof raw === 'string' && { raw: toStandardBase64(raw) }),
    ...(typeof url === 'string' && { url }),
    ...(data !== undefined && { data }),
    ...(filename && { filename }),
    ...(mediaType && { mediaType }),
    ...(metadata && { metadata: metadata as Struct }),
  }
}

/** With padding, in the alphabet that everybody reads. */
function toStandardBase64(text: string): string {
  const standard = /[-_]/.test(text) ? text.replaceAll('-', '+').replaceAll('_', '/') : text
  return standard.length % 4 === 0 ? standard : standard.replace(/=+$/, '').padEnd(Math.ceil(standard.length / 4) * 4, '=')
}

/** It came as JSON, so that is what is in it. */
export function slot(metadata: Record<string, unknown> | null | undefined): Struct | undefined {
  return (metadata ?? undefined) as Struct | undefined
}
