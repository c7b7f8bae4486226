import { isRecord } from '../../../protocol/json.ts'

/** The fields of requests that have fields of their own. `metadata` and `data` belong to the client and stay as they are. */
const INSIDE = [
  'message',
  'request',
  'parts',
  'content',
  'file',
  'configuration',
  'config',
  'pushNotification',
  'pushNotificationConfig',
  'taskPushNotificationConfig',
]

/**
 * A parser of ProtoJSON also takes the names of the Protocol Buffer definition: `message_id` for `messageId`. A value without any of
 * them is handed on as it is.
 */
export function fromProtoNames(value: unknown): unknown {
  if (Array.isArray(value)) return mapped(value)
  if (!isRecord(value)) return value
  let renamed: Record<string, unknown> | undefined
  for (const name in value) {
    if (!name.includes('_')) continue
    renamed ??= { ...value }
    delete renamed[name]
    renamed[name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())] ??= value[name]
  }
  for (const name of INSIDE) {
    const inner = (renamed ?? value)[name]
    if (typeof inner !== 'object' || inner === null) continue
    const read = fromProtoNames(inner)
    if (read === inner) continue
    renamed ??= { ...value }
    renamed[name] = read
  }
  return renamed ?? value
}

function mapped(values: readonly unknown[]): unknown {
  const read = values.map(fromProtoNames)
  return read.some((value, index) => value !== values[index]) ? read : values
}
