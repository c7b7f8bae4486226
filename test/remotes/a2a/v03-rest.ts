/** A2A 0.3 over REST: the JSON of its protocol buffers. */
import { REST_STATUS, restRead } from './rest.ts'
import { artifactV1, messageV1, stateV1 } from './v1.ts'
import { cardV03 } from './v03.ts'
import { CONTEXT, FINAL, ids, TASK, type Fields, type Made, type Part, type Said, type State, type Wire } from './wire.ts'

const partProto = (part: Part): Fields => {
  if ('text' in part) return { text: part.text }
  if ('data' in part) return { data: { data: part.data } }
  if ('url' in part) return { file: { fileWithUri: part.url, mimeType: part.mediaType } }
  return { file: { fileWithBytes: part.raw, mimeType: part.mediaType, ...(part.filename !== undefined && { name: part.filename }) } }
}
const messageProto = (said: Said): Fields => {
  const { parts: _, taskId: __, ...message } = messageV1(said)
  return { ...message, content: said.parts.map(partProto) }
}
const statusProto = (state: State, said?: Said): Fields => ({ state: stateV1(state), ...(said && { message: messageProto(said) }) })
const artifactProto = (made: Made): Fields => ({ ...artifactV1(made), parts: made.parts.map(partProto) })

export const v03Rest: Wire = {
  name: '0.3 over REST',
  cardPath: '/.well-known/agent-card.json',
  card: (url, streaming) => ({ ...cardV03(url, streaming), preferredTransport: 'HTTP+JSON' }),
  read: restRead('/agent/v1/'),
  encode(event) {
    if ('task' in event) {
      const { task, said, made = [], metadata } = event
      return {
        task: {
          id: TASK,
          contextId: CONTEXT,
          status: statusProto(task, said),
          artifacts: made.map(artifactProto),
          ...(metadata && { metadata }),
        },
      }
    }
    if ('status' in event)
      return {
        statusUpdate: {
          ...ids,
          status: statusProto(event.status, event.said),
          final: FINAL.has(event.status),
          ...(event.metadata && { metadata: event.metadata }),
        },
      }
    if ('artifact' in event) return { artifactUpdate: { ...ids, artifact: artifactProto(event.artifact), append: event.append ?? false } }
    return { message: messageProto(event.message) }
  },
  wrap: (result, body) => (body['whole'] ? result['task'] : result),
  failure: (code, message) => ({ status: REST_STATUS[code]?.[0] ?? 500, body: { code, message } }),
}
