// The agent of the connecting process. It prints where it is, and goes on when its standard input says so.
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, toolRunner } from 'uamp'

const gates = new Map()

function print(line) {
  process.stdout.write(`${line}\n`)
}

function gate(name) {
  const known = gates.get(name)
  if (known) return known
  let open
  const made = { opened: new Promise((resolve) => (open = resolve)), open: () => open() }
  gates.set(name, made)
  return made
}

createInterface({ input: process.stdin }).on('line', (name) => gate(name).open())

async function* count([last, ...stops]) {
  for (let n = 1; n <= Number(last); n++) {
    if (n % 8 === 0) await sleep(1)
    yield n === 1 ? '1' : ` ${n}`
    if (!stops.includes(String(n))) continue
    print(`at ${n}`)
    await gate(String(n)).opened
  }
}

async function* weather([city], turn) {
  const [answer] = yield* toolRunner(turn, { tools: [] })([{ id: `call_${turn.id}`, name: 'weather', arguments: JSON.stringify({ city }) }])
  yield `${city}: ${answer.result}`
}

async function* approve([what], turn) {
  const { approved } = await turn.ask('x.approval.request', { message: `${what}?` })
  yield approved ? `${what}: done` : `${what}: left`
}

async function* forever([name], turn) {
  try {
    for (let n = 1; ; n++) {
      yield `${n} `
      await sleep(1)
    }
  } finally {
    print(`${turn.signal.aborted ? 'cancelled' : 'ended'} ${name}.`)
  }
}

const commands = { count, weather, approve, forever }

export const counter = defineAgent('counter', async function* (turn) {
  const [command, ...rest] = (turn.messages.findLast(({ role }) => role === 'user')?.content ?? '').split(' ')
  print(`run ${[command, ...rest].join(' ')} for ${turn.principal.id}.`)
  yield* commands[command](rest, turn)
})
