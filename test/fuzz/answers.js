// @ts-check
import { fileURLToPath } from 'node:url'
import { must } from '../support/violation.js'

/** @typedef {import('./corpus/entry.js').Form} Form */
/** @typedef {import('./wire/parse-http.js').Answer} Answer */

/** The rules, in the words in which they are reported. */
export const RULES = /** @type {const} */ ({
  answered: 'every request is answered or its connection closed',
  wellFormed: 'what the server sends is well-formed',
  failed: 'no error of the server is unexplained',
  form: 'a refusal has the form of its protocol',
  secret: 'an answer gives nothing away',
  token: 'nothing is done for who has not shown a token',
  foreign: "nobody is told what is another's",
})

const isText = (/** @type {unknown} */ value) => typeof value === 'string'
const isNumber = (/** @type {unknown} */ value) => typeof value === 'number'

/** How each protocol says no. @type {Readonly<Record<Form, (body: any) => boolean>>} */
const FORMS = {
  uamp: ({ error }) => isText(error?.code) && isText(error?.message),
  openai: ({ error }) => isText(error?.message) && isText(error?.type) && isText(error?.code),
  rpc: ({ jsonrpc, error }) => jsonrpc === '2.0' && isNumber(error?.code) && isText(error?.message),
  status: ({ error }) => isNumber(error?.code) && isText(error?.status) && isText(error?.message),
  status03: ({ code, message }) => isNumber(code) && isText(message),
  tasks: ({ error, code }) => isText(error) && isText(code),
  oauth: ({ error, error_description }) => isText(error) && isText(error_description),
  omnia: ({ error }) => isText(error?.code) && isText(error?.message),
}

/** What a server may fail with, and why that is no fault. @type {readonly { status: number, shows: RegExp, why: string }[]} */
const EXPLAINED = [
  { status: 500, shows: /You asked me to fail with/, why: 'the demo fails when it is told to (/error)' },
  { status: 501, shows: /not_supported|not supported/i, why: 'what is not built' },
  { status: 502, shows: /answer_too_large/, why: 'an answer that is larger than this server allows' },
  { status: 502, shows: /provider_error/, why: 'an upstream that a client named does not answer' },
  { status: 503, shows: /overloaded|Not ready|Too many/, why: 'a limit of the whole server' },
  { status: 503, shows: /interrupted/, why: 'the server stops' },
  { status: 504, shows: /timeout|timed out/i, why: 'an agent that takes longer than it may (turnTimeoutMs)' },
]

/** What Node answers by itself, without a body. */
const BARE = new Set([400, 417])

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TRACE = /\n\s+at .+:\d+:\d+|\\n\s+at .+:\d+:\d+|node:internal|node_modules\//
/** What `UampError.from` says of what was thrown, and nobody here says otherwise. */
const INTERNAL = /"Internal error"/

/** @typedef {{ secrets: readonly string[], foreign: string | undefined }} Hidden what no answer may have in it */

/** @param {string} text everything that was heard @param {Hidden} hidden */
export function checkText(text, { secrets, foreign }) {
  must(!TRACE.test(text), RULES.secret, () => `a trace: ${around(text, TRACE)}`)
  must(!text.includes(ROOT), RULES.secret, 'a path of this machine')
  for (const secret of secrets) must(!text.includes(secret), RULES.secret, `"${secret.slice(0, 4)}…" is in it`)
  must(foreign === undefined || !text.includes(foreign), RULES.foreign, 'what the bystander said is in it')
  must(!INTERNAL.test(text), RULES.failed, () => around(text, INTERNAL))
}

/** @param {Answer} answer @param {{ form: Form, loose: boolean, isHead?: boolean }} how `loose`: any protocol's form will do */
export function checkAnswer(answer, { form, loose, isHead = false }) {
  const { status, headers, body, whole } = answer
  const type = headers.get('content-type') ?? ''
  const text = body.toString('utf8')
  if (status >= 500) {
    const why = EXPLAINED.find((each) => each.status === status && each.shows.test(text))
    must(why, RULES.failed, `${status} ${text.slice(0, 300)}`)
  }
  if (!whole) return
  if (/[/+]json\b/.test(type)) must(body.length === 0 || parsed(text) !== undefined, RULES.wellFormed, `no JSON: ${text.slice(0, 300)}`)
  if (type.startsWith('text/event-stream')) checkStream(text)
  if (status < 400 || isHead || (loose && text === '' && BARE.has(status))) return
  const told = parsed(text)
  const forms = loose ? Object.values(FORMS) : [FORMS[form]]
  must(typeof told === 'object' && told !== null && forms.some((is) => is(told)), RULES.form, `${form}: ${status} ${text.slice(0, 300)}`)
}

/** @param {string} text */
function checkStream(text) {
  for (const line of text.split('\n')) {
    must(line === '' || /^(data|event|id|retry)?:/.test(line), RULES.wellFormed, `in a stream of events: ${line.slice(0, 200)}`)
    if (!line.startsWith('data:') || line === 'data: [DONE]') continue
    must(parsed(line.slice(5)) !== undefined, RULES.wellFormed, `no JSON in a stream: ${line.slice(0, 200)}`)
  }
}

/** What came on a WebSocket. @param {readonly import('./wire/web-socket.js').Heard[]} heard */
export function checkFrames(heard) {
  for (const { opcode, payload } of heard) {
    if (opcode !== 1) continue
    const text = payload.toString('utf8')
    must(Buffer.from(text).equals(payload), RULES.wellFormed, 'a text message that is not UTF-8')
    must(parsed(text) !== undefined, RULES.wellFormed, `a message that is no JSON: ${text.slice(0, 200)}`)
  }
}

/** @param {string} text @returns {any} undefined: no JSON */
function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @param {string} text @param {RegExp} pattern */
function around(text, pattern) {
  const at = pattern.exec(text)?.index ?? 0
  return text.slice(Math.max(0, at - 200), at + 300)
}
