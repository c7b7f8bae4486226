/** A2A before 1.0, and the `/tasks` of UAMP transports. */
import { a2a, uampTransports } from '../requirement.ts'

const v03 = a2a('0.3.0', {
  'a2a-0.3.send': ['7.1', 'message/send answers with a Task or a Message, which `kind` tells apart.'],
  'a2a-0.3.blocking': ['7.1.1', 'With `blocking` it waits until the task has ended or needs the client; with false it does not.'],
  'a2a-0.3.continue': ['7.1', 'A message with the taskId of a task that waits goes on with that task.'],
  'a2a-0.3.terminal': ['7.1', 'A task that has ended is not begun again: a message to it is an error.'],
  'a2a-0.3.parts': ['6.5, 6.6', 'Parts are text, file with either bytes or a uri, and data, in both directions.'],
  'a2a-0.3.stream': ['7.2', 'message/stream: the data of each event is a JSON-RPC response with the id of the request.'],
  'a2a-0.3.final': ['7.2.2', 'The status that ends a stream is final, and no other.'],
  'a2a-0.3.artifact-chunks': ['7.2.3', 'Chunks of an artifact have its artifactId; `append` and `lastChunk` say how they fit together.'],
  'a2a-0.3.get': ['7.3', 'tasks/get answers with the task as it is.'],
  'a2a-0.3.history-length': ['7.3.1', 'historyLength bounds how many of the newest messages are in the history.'],
  'a2a-0.3.list': ['7, tasks/list', 'GET /v1/tasks answers with an array of tasks.'],
  'a2a-0.3.cancel': ['7.4', 'tasks/cancel answers with the cancelled task; one that has ended is TaskNotCancelableError.'],
  'a2a-0.3.push': ['7.5 to 7.8', 'Push notification configs are set, got, listed and deleted; delete answers null.'],
  'a2a-0.3.push-body': ['9.5', 'A push notification is the Task, with the token in X-A2A-Notification-Token.'],
  'a2a-0.3.resubscribe': ['7.9', 'tasks/resubscribe streams what comes next.'],
  'a2a-0.3.extended-card': ['7.10', 'The extended card is for authenticated callers; without one the error is -32007.'],
  'a2a-0.3.rest': ['3.2.3, 7', 'REST at /v1 has the same operations, as ProtoJSON.'],
  'a2a-0.3.rest-errors': ['8', 'A REST error has code, message and data, and the status that HTTP has for it.'],
  'a2a-0.3.errors': ['8.1, 8.2', 'What is wrong with a request is told by the codes of JSON-RPC and of A2A.'],
  'a2a-0.3.owner': ['4.6', 'What belongs to somebody else is not found.'],
})

const v02 = a2a('0.2.5', {
  'a2a-0.2.send': ['7.1, 7.2', 'message/send and message/stream have the shapes that 0.3 has.'],
  'a2a-0.2.push': ['7.5, 7.6', 'A config without an id is the only one of its task: set replaces it, get finds it by the task alone.'],
  'a2a-0.2.extended-card': ['7.10', 'The extended card is at agent/authenticatedExtendedCard beside the endpoint, by GET.'],
})

const v01 = a2a('0.1.0', {
  'a2a-0.1.send': ['7.1', 'tasks/send answers with the Task, which has the id that the client chose and its sessionId.'],
  'a2a-0.1.continue': ['7.1.1', 'tasks/send with the id of a task that waits goes on with it.'],
  'a2a-0.1.session': ['6.1', 'Tasks of one sessionId belong together.'],
  'a2a-0.1.parts': ['6.5', 'Parts are told apart by `type`.'],
  'a2a-0.1.stream': ['7.2', 'tasks/sendSubscribe streams {id, status, final} and {id, artifact}, each in a JSON-RPC response.'],
  'a2a-0.1.artifact-index': ['6.7', 'Artifacts and their chunks are told apart by `index`.'],
  'a2a-0.1.get': ['7.3', 'tasks/get answers with the task; it has no history unless that is asked for.'],
  'a2a-0.1.cancel': ['7.4', 'tasks/cancel answers with the cancelled task.'],
  'a2a-0.1.push': ['7.5, 7.6', 'tasks/pushNotification/set and get have the config of a task.'],
  'a2a-0.1.resubscribe': ['7.7', 'tasks/resubscribe streams what comes next, with the same events.'],
  'a2a-0.1.errors': ['8', 'What is wrong with a request is told by the codes of JSON-RPC and of A2A.'],
})

const tasks = uampTransports('a2a', {
  'uamp-tasks.create': ['Create Task', 'POST /tasks streams task.started, task.message for what is said, and task.completed.'],
  'uamp-tasks.failed': ['Create Task', 'What fails is task.failed, with its reason.'],
  'uamp-tasks.get': ['Get Task Status', 'GET /tasks/{id} has the status in the words pending, running, completed, failed and cancelled.'],
  'uamp-tasks.cancel': ['Cancel Task', 'DELETE /tasks/{id} cancels it.'],
  'uamp-tasks.payment': ['Payment Handling', 'A question for money is task.failed with payment_required, 402 and `accepts`.'],
})

export const a2aLegacy = { ...v03, ...v02, ...v01, ...tasks }
