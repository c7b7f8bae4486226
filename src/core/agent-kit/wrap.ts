import { checkGenerator } from '../engine/check-draft.ts'
import type { AgentPort, Said, Turn } from '../ports/agent.ts'
import { derivedTurn } from './derived-turn.ts'

/** Runs what is inside, with changes of the turn if there are any. */
export type Next = (changes?: Partial<Turn>) => AsyncIterable<Said>

/** Something around each turn of an agent. It is an agent itself, which is also given the agent inside. */
export type Layer = (turn: Turn, next: Next) => AsyncIterable<Said>

/**
 * The same agent with something around each of its turns, the first layer outermost:
 * `wrap(agent, async function* (turn, next) { yield* next() })`.
 */
export function wrap<A extends AgentPort>(agent: A, ...layers: readonly Layer[]): A {
  const run = layers.reduceRight<AgentPort['run']>(
    (inner, layer) => (turn) => {
      const next: Next = (changes) => checkGenerator(inner(changes ? derivedTurn(turn, { handoff: turn.handoff, ...changes }) : turn))
      return layer(turn, next)
    },
    (turn) => agent.run(turn),
  )
  // Not a copy: capabilities and tools may change, and an agent's own methods need the agent as `this`.
  return new Proxy(agent, {
    get(target, name) {
      if (name === 'run') return run
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  })
}
