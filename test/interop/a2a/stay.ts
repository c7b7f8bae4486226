/** A client in a process of its own, which streams a task until it is killed. Prints the task's id, then each chunk. */
import { jsonRpc1 } from './generation-1.ts'
import { say, textOf } from './client.ts'

const [url = '', text = ''] = process.argv.slice(2)
const client = await jsonRpc1.connect(url)
for await (const update of client.stream(say(text))) {
  if ('task' in update) process.stdout.write(`task ${update.task.id}\n`)
  if ('chunk' in update) process.stdout.write(`chunk ${textOf(update.chunk.parts)}\n`)
}
