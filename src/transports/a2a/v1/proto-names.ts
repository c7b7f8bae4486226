import { isRecord } from '../../../protocol/json.ts'

/** Every field whose name in the Protocol Buffer definition differs from the one in JSON. */
const NAMES: Readonly<Record<string, string>> = {
  message_id: 'messageId',
  context_id: 'contextId',
  task_id: 'taskId',
  reference_task_ids: 'referenceTaskIds',
  media_type: 'mediaType',
  accepted_output_modes: 'acceptedOutputModes',
  task_push_notification_config: 'taskPushNotificationConfig',
  history_length: 'historyLength',
  return_immediately: 'returnImmediately',
  page_size: 'pageSize',
  page_token: 'pageToken',
  status_timestamp_after: 'statusTimestampAfter',
  include_artifacts: 'includeArtifacts',
}

/** Where further fields with such names can be. `metadata` and `data` are the client's own and stay as they are. */
const INSIDE = ['message', 'parts', 'configuration', 'taskPushNotificationConfig']

/** ProtoJSON: a parser takes the names of the Protocol Buffer definition too. What has none of them is handed on as it is. */
export function fromProtoNames(value: unknown): unknown {
  if (Array.isArray(value)) return mapped(value)
  if (!isRecord(value)) return value
  let renamed: Record<string, unknown> | undefined
  for (const name in value) {
    const known = NAMES[name]
    if (known === undefined || !Object.hasOwn(NAMES, name)) continue
    renamed ??= { ...value }
    delete renamed[name]
    renamed[known] ??= value[name]
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
