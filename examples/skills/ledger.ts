import type { Skill } from 'uamp'

/** Watches without being in the way, and shows what it saw at a route of its own. */
export function ledger(): Skill {
  const placed: unknown[] = []
  let turns = 0
  return {
    name: 'ledger',
    observers: [{ name: 'ledger', subscribes: ['order.placed'], observe: (event) => void placed.push(event) }],
    hooks: { onEnd: () => void turns++ },
    routes: () => [{ method: 'GET', path: '/ledger', access: 'request', handle: async () => Response.json({ turns, placed }) }],
  }
}
