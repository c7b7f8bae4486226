/** An agent as the A2A project's own SDK has it. It streams, can be cancelled, and asks back. */
import { Role, TaskState } from '@a2a-js/sdk'
import { AgentEvent } from '@a2a-js/sdk/server'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

const part = (text) => ({ content: { $case: 'text', value: text }, filename: '', mediaType: '', metadata: undefined })
const textOf = ({ parts }) => parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ')

export class Counter {
  #running = new Map()

  async execute({ userMessage, taskId, contextId, task }, bus) {
    const stop = new AbortController()
    this.#running.set(taskId, stop)
    const publish = (state, text) => bus.publish(AgentEvent.statusUpdate(this.#status({ taskId, contextId, state, text })))
    const say = (artifactId, text, append) => {
      const artifact = { artifactId, name: '', description: '', parts: [part(text)], metadata: undefined, extensions: [] }
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: false, metadata: undefined }))
    }
    try {
      bus.publish(AgentEvent.task(task ?? this.#task(taskId, contextId, userMessage)))
      publish(TaskState.TASK_STATE_WORKING)
      const [first = '', ...rest] = textOf(userMessage).split(' ')
      if (first === 'ask') return publish(TaskState.TASK_STATE_INPUT_REQUIRED, 'What shall I say?')
      const words =
        first === 'count' ? Array.from({ length: Number(rest[0] ?? 3) }, (_, n) => `${n + 1}`) : ['You', 'said:', first, ...rest]
      const artifactId = randomUUID()
      for (const [index, word] of words.entries()) {
        await sleep(first === 'count' ? Number(rest[1] ?? 0) : 0, undefined, { signal: stop.signal })
        say(artifactId, index === 0 ? word : ` ${word}`, index > 0)
      }
      publish(TaskState.TASK_STATE_COMPLETED)
    } catch (error) {
      if (!stop.signal.aborted) throw error
      publish(TaskState.TASK_STATE_CANCELED)
      console.log(`Cancelled ${taskId}`)
    } finally {
      this.#running.delete(taskId)
      bus.finished()
    }
  }

  async cancelTask(taskId) {
    this.#running.get(taskId)?.abort()
  }

  #task(id, contextId, message) {
    const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() }
    return { id, contextId, status, artifacts: [], history: [message], metadata: undefined }
  }

  #status({ taskId, contextId, state, text }) {
    const message = text && {
      messageId: randomUUID(),
      role: Role.ROLE_AGENT,
      parts: [part(text)],
      taskId,
      contextId,
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    }
    return { taskId, contextId, status: { state, message, timestamp: new Date().toISOString() }, metadata: undefined }
  }
}
