// @ts-check
/** An ACP agent as plain as it can be. What it is asked says what it does. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const loads = process.argv.includes('--load')
/** What it does wrong. @param {string} fault */
const has = (fault) => process.argv.includes(`--${fault}`)
/** Tells its commands in one piece with the answer to `session/new`. */
const eager = process.argv.includes('--eager')
/** @type {object | undefined} */
let early
const MEMORY = 'sessions.json'
/** @type {Record<string, any>} */
const sessions = loads && existsSync(MEMORY) ? JSON.parse(readFileSync(MEMORY, 'utf8')) : {}
/** @type {Map<number, (answer: any) => void>} */
const waiting = new Map()
/** @type {Map<string, () => void>} */
const cancels = new Map()
let last = 0
let terminal = ''
/** Its answers have an error that is null. */
let nulls = false

/** @param {object} message */
const send = (message) => {
  const after = early && `${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: early })}\n`
  early = undefined
  const error = nulls && 'result' in message && { error: null }
  return process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message, ...error })}\n${after ?? ''}`)
}
/** @param {string} method @param {object} params @returns {Promise<any>} */
const ask = (method, params) =>
  new Promise((resolve) => {
    waiting.set(++last, resolve)
    send({ id: last, method, params })
  })

const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, { id: 'code', name: 'Code' }] } // prettier-ignore
const configOptions = [
  { id: 'llm', name: 'Model', category: 'model', type: 'select', currentValue: 'small', options: [{ value: 'small', name: 'S' }, { value: 'large', name: 'L' }] }, // prettier-ignore
]

/** @param {number} code @param {string} message @param {object} [data] */
const failure = (code, message, data) => Object.assign(new Error(message), { code, data })

/** @param {string} method @param {any} params */
async function answer(method, params) {
  const { sessionId } = params
  switch (method) {
    case 'initialize':
      if (has('hang-initialize')) return new Promise(() => undefined)
      if (has('odd-initialize')) return { protocolVersion: 'one' }
      return {
        protocolVersion: 1,
        agentCapabilities: { loadSession: loads, promptCapabilities: { image: true }, mcpCapabilities: { http: has('mcp-http') } },
        authMethods: [],
      }
    case 'session/new': {
      if (has('hang-new')) return new Promise(() => undefined)
      // The first run of it answers one session.
      if (has('hang-second') && !existsSync('hung') && Object.keys(sessions).length > 0) {
        writeFileSync('hung', '')
        return new Promise(() => undefined)
      }
      if (has('sign-in')) throw failure(-32000, 'Authentication required')
      const id = `s${process.pid}-${Object.keys(sessions).length + 1}`
      sessions[id] = { prompts: [], mode: 'ask', model: 'small', servers: params.mcpServers }
      if (eager) early = { sessionId: id, update: { sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'soon' }] } }
      return { sessionId: id, modes, configOptions }
    }
    case 'session/load':
      if (!sessions[sessionId]) throw failure(-32002, 'No such session')
      send({
        method: 'session/update',
        params: { sessionId, update: { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'again' } } },
      })
      return { modes, configOptions }
    case 'session/set_mode':
      if (has('sign-in-to-choose')) throw failure(-32000, 'Authentication required')
      sessions[sessionId].mode = params.modeId
      return {}
    case 'session/set_config_option':
      sessions[sessionId].model = params.value
      return { configOptions }
    case 'session/prompt':
      if (params.prompt[0]?.text === 'paid work') return paidWork(params)
      return prompt(sessionId, params.prompt)
    default:
      throw failure(-32601, 'Method not found')
  }
}

/** Wants money for each prompt. @param {any} params */
function paidWork({ sessionId, payment_token: token, _meta }) {
  if (token === undefined) throw failure(-32402, 'Pay first', { accepts: [{ scheme: 'token', amount: '0.02', currency: 'USD' }] })
  const content = { type: 'text', text: `${token} ${_meta['uamp/payment_token']}` }
  send({ method: 'session/update', params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } } })
  return { stopReason: 'end_turn' }
}

/** @param {string} sessionId @param {any[]} blocks */
async function prompt(sessionId, blocks) {
  const session = sessions[sessionId]
  const text = blocks.map((block) => block.text ?? `<${block.type}>`).join('')
  session.prompts.push(text)
  if (loads) writeFileSync(MEMORY, JSON.stringify(sessions))
  /** @param {object} update */
  const update = (update) => send({ method: 'session/update', params: { sessionId, update } })
  /** @param {unknown} said */
  const say = (said) =>
    update({
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text: typeof said === 'string' ? said : JSON.stringify(said) },
    })
  const [command = '', ...rest] = text.split(' ')
  const argument = rest.join(' ')
  switch (command) {
    case 'everything':
      update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm.' } })
      update({ sessionUpdate: 'plan', entries: [{ content: 'Do it', status: 'pending', priority: 'high' }] })
      update({ sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'Edit a.ts', kind: 'edit', status: 'pending' })
      update({ sessionUpdate: 'tool_call_update', toolCallId: 'c1', rawInput: { path: 'a.ts' }, locations: [{ path: '/a.ts' }] })
      update({
        sessionUpdate: 'tool_call_update',
        toolCallId: 'c1',
        status: 'in_progress',
        content: [{ type: 'content', content: { type: 'text', text: 'half' } }],
      })
      update({
        sessionUpdate: 'tool_call_update',
        toolCallId: 'c1',
        status: 'completed',
        content: [{ type: 'diff', path: '/a.ts', oldText: 'a', newText: 'b' }],
      })
      update({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 0.5, currency: 'USD' } })
      update({ sessionUpdate: 'something_new', value: 1 })
      update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'fix', description: 'Repairs it' }] })
      update({ sessionUpdate: 'agent_message_chunk', content: { type: 'image', data: 'aaaa', mimeType: 'image/png' } })
      break
    case 'permission': {
      update({ sessionUpdate: 'tool_call', toolCallId: 'p1', title: 'rm -rf', kind: 'delete', rawInput: { all: true } })
      const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }, { optionId: 'ever', name: 'Ever', kind: 'allow_always' }, { optionId: 'no', name: 'No', kind: 'reject_once' }] // prettier-ignore
      say((await ask('session/request_permission', { sessionId, toolCall: { toolCallId: 'p1', title: 'May I?' }, options })).result)
      return { stopReason: 'end_turn' }
    }
    // As some coding agents do: what it would change, and no arguments.
    case 'diff': {
      const locations = [{ path: '/a.ts' }]
      update({ sessionUpdate: 'tool_call', toolCallId: 'd1', title: 'Edit', kind: 'edit', status: 'in_progress', locations })
      const toolCall = { toolCallId: 'd1', title: 'Edit a.ts?', content: [{ type: 'diff', path: '/a.ts', newText: 'b' }] }
      const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
      await ask('session/request_permission', { sessionId, toolCall, options })
      return { stopReason: 'end_turn' }
    }
    case 'read':
      say(await ask('fs/read_text_file', { sessionId, ...(argument.startsWith('{') ? JSON.parse(argument) : { path: argument }) }))
      return { stopReason: 'end_turn' }
    case 'write':
      say(await ask('fs/write_text_file', { sessionId, path: rest[0], content: rest.slice(1).join(' ') }))
      return { stopReason: 'end_turn' }
    case 'run': {
      const made = await ask('terminal/create', { sessionId, ...JSON.parse(argument) })
      if (made.error) say(made)
      else {
        const { terminalId } = made.result
        terminal = terminalId
        const { result: exit } = await ask('terminal/wait_for_exit', { sessionId, terminalId })
        const { result: shown } = await ask('terminal/output', { sessionId, terminalId })
        await ask('terminal/release', { sessionId, terminalId })
        say({ exit, shown, after: (await ask('terminal/output', { sessionId, terminalId })).error.code })
      }
      return { stopReason: 'end_turn' }
    }
    case 'start': {
      const made = await ask('terminal/create', { sessionId, command: 'sleep', args: ['1000'] })
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
      say({ terminal: made.result.terminalId, pids: [process.pid, child.pid] })
      return { stopReason: 'end_turn' }
    }
    // Methods of its client one after the other: `$` is the id of the terminal that it made last.
    case 'ask': {
      const answers = []
      for (const [method, params] of JSON.parse(argument)) {
        if (method === 'show') {
          const content = [{ type: 'terminal', terminalId: terminal }]
          update({ sessionUpdate: 'tool_call', toolCallId: 'x1', title: 'Run', kind: 'execute', status: 'in_progress', content })
          continue
        }
        const given = { sessionId, ...JSON.parse(JSON.stringify(params ?? {}).replaceAll('$', terminal)) }
        const { result, error } = await ask(method, given)
        terminal = result?.terminalId ?? terminal
        answers.push(error ?? result)
      }
      say(answers)
      return { stopReason: 'end_turn' }
    }
    // As much as it can, whether somebody reads it or not.
    case 'flood': {
      let stop = false
      cancels.set(sessionId, () => (stop = true))
      const piece = 'x'.repeat(1_000)
      for (let count = 0; count < Number(argument) && !stop; count++) {
        if (!say(piece)) await new Promise((resolve) => process.stdout.once('drain', resolve))
        if (count % 200 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      if (stop) writeFileSync('stopped', '')
      return { stopReason: stop ? 'cancelled' : 'end_turn' }
    }
    // So much that somebody who does not read it does not come to the question behind it.
    case 'unread': {
      for (let count = 0; count < 7_000; count++) say('x'.repeat(1_000))
      const asking = ask('session/request_permission', { sessionId, toolCall: { toolCallId: 'u1', title: 'May I?' }, options: [] })
      writeFileSync('asked', '')
      writeFileSync('outcome', (await asking).result.outcome.outcome)
      return { stopReason: 'end_turn' }
    }
    case 'tool':
      update({
        sessionUpdate: 'tool_call',
        toolCallId: 't1',
        title: 'Read file',
        kind: 'search',
        status: 'pending',
        rawInput: { path: '/a' },
      })
      await new Promise((resolve) => cancels.set(sessionId, () => resolve(undefined)))
      return { stopReason: 'cancelled' }
    case 'deaf':
      process.stdout.end()
      return new Promise(() => undefined)
    case 'deep':
      return { stopReason: 'end_turn', _meta: JSON.parse('{"a":'.repeat(100) + '1' + '}'.repeat(100)) }
    case 'null':
      say('both')
      nulls = true
      return { stopReason: 'end_turn' }
    case 'stop':
      return { stopReason: argument }
    // A session counts what it costs as a whole.
    case 'cost':
      session.cost = (session.cost ?? 0) + Number(argument)
      update({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: session.cost, currency: 'USD' } })
      return { stopReason: 'end_turn' }
    // All at once.
    case 'terminals': {
      const made = await Promise.all(
        Array.from({ length: 40 }, () => ask('terminal/create', { sessionId, command: 'sleep', args: ['1000'], cwd: process.cwd() })),
      )
      say({ made: made.filter(({ result }) => result).length, refused: made.filter(({ error }) => error).length })
      return { stopReason: 'end_turn' }
    }
    case 'background': {
      const { result } = await ask('terminal/create', { sessionId, command: 'sleep 1000 & echo $!' })
      const exit = await ask('terminal/wait_for_exit', { sessionId, ...result })
      const shown = await ask('terminal/output', { sessionId, ...result })
      say({ exit: exit.result, pid: Number(shown.result.output) })
      if (argument === 'release') await ask('terminal/release', { sessionId, ...result })
      return { stopReason: 'end_turn' }
    }
    // What it could call, while the prompt runs.
    case 'servers':
      say(session.servers)
      if (argument === 'end') return { stopReason: 'end_turn' }
      await new Promise((resolve) => cancels.set(sessionId, () => resolve(undefined)))
      return { stopReason: 'cancelled' }
    case 'wait':
      say('waiting')
      await new Promise((resolve) => cancels.set(sessionId, () => resolve(undefined)))
      session.prompts.push('CANCELLED')
      return { stopReason: 'cancelled' }
    case 'fail':
      throw failure(-32603, 'out of ink', { code: 'no_ink' })
    case 'sign':
      throw failure(-32000, 'Authentication required')
    case 'long':
      return { stopReason: 'max_tokens' }
    case 'die':
      process.stderr.write('something broke\n')
      process.exit(7)
  }
  say({ session: sessionId, prompts: session.prompts, mode: session.mode, model: session.model, env: process.env['SECRET'] ?? null })
  return { stopReason: 'end_turn' }
}

if (has('hang-initialize') || has('hang-new')) writeFileSync('pid', String(process.pid))
process.stdout.write('hello from an agent that prints\n')
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, ...rest } = JSON.parse(line)
  if (method === undefined) waiting.get(id)?.(rest)
  else if (method === 'session/cancel') cancels.get(params.sessionId)?.()
  else if (id !== undefined)
    answer(method, params).then(
      (result) => send({ id, result }),
      ({ code = -32603, message, data }) => send({ id, error: { code, message, data } }),
    )
}
process.exit(0)
