// @ts-check
import { defineAgent, text } from '../../dist/index.js'

/** What a talker says begins with a marker, by which it is found again in the conversation. */
export const MARKER = /\bm\d+x\d+\b/g

/**
 * Does what the last text says: `<marker> count 5 2`, `late 30`, `big 20`, `ask`, `told`. The last one tells the conversation, so that
 * every protocol can be asked for it, whatever else it can read. What the others say begins with the marker.
 *
 * @param {string} name
 */
export function chaosAgent(name) {
  return defineAgent(name, answer, { description: 'Counts, asks, and tells what it was told', capabilities: { modalities: ['text'] } })
}

/** @param {import('../../dist/index.js').Turn} turn */
async function* answer(turn) {
  const last = turn.messages.findLast(({ role }) => role === 'user')
  const [marker, command, ...rest] = (textsOf(last).at(-1) ?? '').split(' ')
  const [first = 0, second = 0] = rest.map(Number)
  switch (command) {
    case 'count':
      yield text(`${marker}`)
      for (let n = 1; n <= first; n++) {
        if (second > 0) await wait(second)
        yield text(` ${n}`)
      }
      return
    case 'late':
      await wait(first)
      yield text(`${marker} late`)
      return
    case 'big':
      yield text(`${marker} `)
      for (let n = 0; n < first; n++) yield text('x'.repeat(1024))
      return
    case 'ask': {
      const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
      yield text(`${marker} ${approved ? 'yes' : 'no'}`)
      return
    }
    case 'told':
      yield text(JSON.stringify(turn.messages.map(shown)))
      return
    default:
      yield text(`?${command}`)
  }
}

/** What is answered when nobody stops it; undefined where that depends. @param {string} said */
export function expected(said) {
  const [marker, command, first = '0'] = said.split(' ')
  if (command === 'count') return [marker, ...Array.from({ length: Number(first) }, (_, n) => n + 1)].join(' ')
  if (command === 'late') return `${marker} late`
  if (command === 'big') return `${marker} ${'x'.repeat(1024 * Number(first))}`
  return command === 'ask' ? `${marker} yes` : undefined
}

/** @param {any} message */
function shown(message) {
  const said = textsOf(message).join('\n')
  if (message.role === 'user') return { user: said.match(MARKER) ?? [] }
  // What was told before has everything in it, and a long text need not be shown.
  return { [message.role]: said.startsWith('[{') ? 'told' : said.length > 400 ? `${said.length} characters` : said }
}

/** @param {any} message @returns {string[]} */
function textsOf(message) {
  const texts = message?.content_items?.flatMap((/** @type {any} */ item) => (item.type === 'text' ? [item.text] : [])) ?? []
  return texts.length > 0 ? texts : [message?.content ?? '']
}

/** At most a few milliseconds too long when it is stopped. @param {number} ms */
function wait(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
