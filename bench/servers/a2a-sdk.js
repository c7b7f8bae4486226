// @ts-check
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { answer } from '../lib/process.js'
import { count } from './bare-session.js'

/** The express server of the official SDK, as its guide puts it together, with the agent that the others have: `/count n ms`. */
const require = createRequire(new URL('../peers/package.json', import.meta.url))
const peer = (/** @type {string} */ name) => import(pathToFileURL(require.resolve(name)).href)
const { default: express } = await peer('express')
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await peer('@a2a-js/sdk/server')
const { jsonRpcHandler, UserBuilder } = await peer('@a2a-js/sdk/server/express')
const { TaskState } = await peer('@a2a-js/sdk')

const executor = {
  /** @param {any} context @param {any} bus */
  async execute({ taskId, contextId, userMessage }, bus) {
    const [, n, ms] = String(userMessage.parts[0].content.value).split(' ').map(Number)
    const status = (/** @type {number} */ state) => ({ state, message: undefined, timestamp: new Date().toISOString() })
    const task = { id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED), artifacts: [], history: [userMessage] }
    bus.publish(AgentEvent.task({ ...task, metadata: undefined }))
    const update = (/** @type {number} */ state) =>
      AgentEvent.statusUpdate({ taskId, contextId, status: status(state), metadata: undefined })
    bus.publish(update(TaskState.TASK_STATE_WORKING))
    const rest = { artifactId: `${taskId}-text`, name: '', description: '', metadata: undefined, extensions: [] }
    let append = false
    for await (const value of count(n ?? 0, ms ?? 0)) {
      const part = { content: { $case: 'text', value }, filename: '', mediaType: '', metadata: undefined }
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: { ...rest, parts: [part] },
          append,
          lastChunk: false,
          metadata: undefined,
        }),
      )
      append = true
    }
    bus.publish(update(TaskState.TASK_STATE_COMPLETED))
    bus.finished()
  },
  async cancelTask() {},
}

const card = {
  name: 'demo',
  description: 'Counts',
  version: '1.0.0',
  supportedInterfaces: [{ url: 'http://127.0.0.1/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
  defaultInputModes: ['text'],
  defaultOutputModes: ['text'],
  skills: [],
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
}
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor)
const app = express()
app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
const server = app.listen(0, '127.0.0.1', () => answer({}, { ready: { port: server.address().port } }))
// While others are answered, a client that has asked again must not be taken for idle.
server.keepAliveTimeout = 60_000
