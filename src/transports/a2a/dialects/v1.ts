/** A2A 1.0. Its answers need no translation: inside, everything is in the shapes of 1.0. */
import type * as z from 'zod/mini'
import { standardBase64 } from '../../../wire/a2a/parts.ts'
import type { Message, NewPushConfig, Part, SendRequest } from '../model.ts'
import type { Dialect } from '../operations.ts'
import { parseParams } from '../request.ts'
import { filled, fromProtoNames, PAGE_SIZE } from '../schema.ts'
import * as schema from './v1-schema.ts'

export const v1: Dialect = {
  version: '1.0',
  read: {
    send: (params) => toSendRequest(parsed(schema.SendMessageRequest, params)),
    get(params) {
      const { id, historyLength } = parsed(schema.GetTaskRequest, params)
      return { id, historyLength: historyLength ?? undefined }
    },
    list(params) {
      const { contextId, status, pageSize, pageToken, historyLength, statusTimestampAfter, includeArtifacts } = parsed(
        schema.ListTasksRequest,
        params,
      )
      return {
        contextId: contextId || undefined,
        state: status === 'TASK_STATE_UNSPECIFIED' ? undefined : (status ?? undefined),
        pageSize: pageSize ?? PAGE_SIZE,
        pageToken: pageToken || undefined,
        historyLength: historyLength ?? undefined,
        statusAfter: statusTimestampAfter ? Date.parse(statusTimestampAfter) : undefined,
        includeArtifacts: includeArtifacts ?? false,
      }
    },
    task: (params) => parsed(schema.TaskRequest, params),
    setPush(params) {
      const { taskId, ...fields } = parsed(schema.CreatePushConfigRequest, params)
      return { ...toPushConfig(fields), taskId }
    },
    getPush: (params) => parsed(schema.OnePushConfigRequest, params),
    deletePush: (params) => parsed(schema.OnePushConfigRequest, params),
    listPush(params) {
      const { taskId, pageSize, pageToken } = parsed(schema.ListPushConfigsRequest, params)
      return { taskId, pageSize: pageSize || undefined, pageToken: pageToken || undefined }
    },
    card: (params) => void parsed(schema.ExtendedCardRequest, params),
  },
  write: {
    sent: (result) => result,
    task: (task) => task,
    page: (page) => page,
    events: () => (event) => [event],
    push: (config) => config,
    pushes: (page) => page,
    deleted: {},
  },
}

function parsed<T extends z.ZodMiniType>(of: T, params: unknown): z.output<T> {
  return parseParams(of, fromProtoNames(params ?? {}))
}

function toSendRequest({ message, configuration, metadata }: schema.SendMessageRequest): SendRequest {
  const { acceptedOutputModes, taskPushNotificationConfig, historyLength, returnImmediately } = configuration ?? {}
  return {
    message: toMessage(message),
    generation: '1.0',
    returnImmediately: returnImmediately ?? false,
    historyLength: historyLength ?? undefined,
    acceptedOutputModes: acceptedOutputModes ?? undefined,
    metadata: metadata ?? undefined,
    ...(taskPushNotificationConfig && { push: toPushConfig(taskPushNotificationConfig) }),
  }
}

function toPushConfig({ tenant: _, authentication, ...fields }: schema.PushConfigFields): Omit<NewPushConfig, 'taskId'> {
  return { ...filled(fields), ...(authentication && { authentication: filled(authentication) }) }
}

function toMessage({ parts, ...fields }: schema.Message): Message {
  return { parts: parts.map(toPart), ...filled(fields) }
}

function toPart({ text, raw, url, data, ...about }: schema.Part): Part {
  return {
    ...(text != null && { text }),
    ...(raw != null && { raw: standardBase64(raw) }),
    ...(url != null && { url }),
    ...(data !== undefined && { data }),
    ...filled(about),
  }
}
