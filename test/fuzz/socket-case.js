// @ts-check
import { must } from '../support/violation.js'
import { checkAnswer, checkFrames, checkText, RULES } from './answers.js'
import { mutateBytes } from './mutate/bytes.js'
import { BINARY, frame, oddFrames, TEXT } from './mutate/frames.js'
import { jsonText, mutateJson } from './mutate/json.js'
import { RawSocket } from './wire/web-socket.js'

/** @typedef {import('./case.js').Case} Case */
/** @typedef {NonNullable<import('./corpus/entry.js').Entry['socket']>} Conversation */
/** What is sent at once: made when it is, as ids come with what was heard. @typedef {() => Buffer} Made */

/** How long something may take to be answered before the next message is sent. */
const ANSWER_MS = 30

/** @param {Case} played @param {Conversation} conversation */
export async function playSocket(played, { target, headers, frames }) {
  const { ground, ids, random, mode, entry } = played
  const made = plan(played, frames)
  const path = played.placed(target)
  const given = Object.entries(headers).map(([name, value]) => /** @type {[string, string]} */ ([name, ids.fill(value)]))
  const leaves = random.chance(0.5)
  const rushes = random.chance(0.15)
  const vanishes = random.chance(0.1)

  const socket = new RawSocket(ground.port)
  try {
    const isOpen = await socket.open(ids.fill(path, encodeURIComponent), [['host', 'localhost'], ...played.credentials(), ...given])
    played.sent = socket.sent
    must(socket.malformed === undefined, RULES.wellFormed, `${socket.malformed}`)
    must(socket.answer || socket.isClosed, RULES.answered, 'an upgrade was not answered')
    if (!isOpen) {
      must(socket.answer, RULES.answered, 'an upgrade was closed without a word')
      checkText(`${socket.answer.head}${socket.answer.body.toString('utf8')}`, ground.hidden)
      checkAnswer(socket.answer, { form: entry.form, loose: socket.answer.status === 408 })
      played.outcomes.push(String(socket.answer.status))
      return
    }
    const mayStay = mode === 'open' || mode === 'right' || conversationTakesToken(played)
    must(mayStay, RULES.token, 'a WebSocket was opened')
    for (const make of made) {
      const before = socket.heard.length
      socket.write(make())
      if (socket.isClosed || socket.closeCode !== undefined) break
      if (!rushes) await socket.until(() => socket.heard.length > before, ANSWER_MS)
      for (const { opcode, payload } of socket.heard.slice(before)) if (opcode === TEXT) ids.learn(payload.toString('utf8'))
    }
    if (vanishes) return socket.leave(false)
    must(await socket.isAnswered(), RULES.answered, 'a WebSocket neither answers a ping nor is it closed')
    // Who was told that it is over sees the end of the connection too.
    if (socket.closeCode !== undefined) must(await socket.ends(), RULES.answered, 'a WebSocket was closed, and its connection stays')
  } finally {
    socket.leave(leaves)
  }
  must(socket.malformed === undefined, RULES.wellFormed, `${socket.malformed}`)
  played.outcomes.push(socket.closeCode === undefined ? '101' : `101 ${socket.closeCode}`)
  must(
    socket.closeCode !== 1011 || !socket.heard.some(({ payload }) => payload.includes('Internal error')),
    RULES.failed,
    'a WebSocket was closed with 1011',
  )
  checkFrames(socket.heard)
  checkText(socket.heard.map(({ payload }) => payload.toString('utf8')).join('\n'), ground.hidden)
}

/** @param {Case} played */
function conversationTakesToken({ entry }) {
  return entry.socket?.takesToken === true
}

/** @param {Case} played @param {readonly unknown[]} given @returns {Made[]} */
function plan(played, given) {
  const { random, mode, ground } = played
  let frames = given.map((each, at) => (at === 0 && mode === 'late' && isObject(each) ? { ...each, token: ground.token } : each))
  if (random.chance(0.1)) frames = frames.toReversed()
  if (random.chance(0.15)) frames = frames.filter(() => random.chance(0.7))
  if (random.chance(0.15)) frames = frames.flatMap((each) => (random.chance(0.3) ? [each, each] : [each]))
  const share = random.pick([0, 0.15, 0.15, 0.4, 1])
  const odd = random.chance(0.25) ? random.whole(0, frames.length - 1) : -1
  return frames.map((each, at) => {
    const make = one(played, each, random.chance(share))
    if (at !== odd) return make
    const later = random.fork()
    return () => Buffer.concat([oddFrames(unmasked(make()), later), ...(later.chance(0.5) ? [make()] : [])])
  })
}

/** @param {Case} played @param {unknown} value @param {boolean} mutated @returns {Made} */
function one({ random, ids }, value, mutated) {
  const later = random.fork()
  if (Buffer.isBuffer(value)) {
    const payload = mutated ? mutateBytes(value, random) : value
    return () => frame(payload, { opcode: mutated && later.chance(0.1) ? TEXT : BINARY })
  }
  const shaken = mutated && random.chance(0.15)
  let changed = value
  if (mutated && !shaken) for (let times = random.pick([1, 1, 2, 3]); times > 0; times--) changed = mutateJson(changed, random)
  const text = mutated ? jsonText(changed, random) : JSON.stringify(changed)
  return () => {
    const bytes = Buffer.from(ids.fill(text, (id) => JSON.stringify(id).slice(1, -1)))
    return frame(shaken ? mutateBytes(bytes, later) : bytes, { opcode: mutated && later.chance(0.03) ? BINARY : TEXT })
  }
}

/** What a whole frame of ours carries. @param {Buffer} bytes */
function unmasked(bytes) {
  const length = /** @type {number} */ (bytes[1]) & 127
  const at = (length === 126 ? 4 : length === 127 ? 10 : 2) + 4
  const payload = Buffer.from(bytes.subarray(at))
  for (let index = 0; index < payload.length; index++) payload[index] = /** @type {number} */ (payload[index]) ^ ((index % 4) + 1)
  return payload
}

/** @param {unknown} value @returns {value is object} */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value)
}
