import type { Skill } from 'uamp'

const PRICES = new Map([
  ['apples', 2],
  ['pears', 3],
])

/** Reads what the customer wants, prices it here, and lets the customer's own program pay. */
export function orders(): Skill {
  return {
    name: 'orders',
    tools: [
      {
        name: 'price',
        description: 'What an order costs',
        parameters: { type: 'object', properties: { item: { type: 'string' }, count: { type: 'number' } }, required: ['item', 'count'] },
        run({ item, count }) {
          const each = PRICES.get(String(item))
          if (each === undefined) throw new Error(`we have no ${String(item)}`)
          return { total: each * Number(count) }
        },
      },
    ],
    handlers: [
      {
        name: 'reader',
        subscribes: ['input.text'],
        produces: ['order.placed', 'response.delta'],
        async *process(event) {
          const [, count, item] = /(\d+) (\w+)/.exec('text' in event ? String(event.text) : '') ?? []
          if (count === undefined) yield { type: 'response.delta', delta: { type: 'text', text: 'Order something, such as "3 apples".' } }
          // A type of our own: whoever subscribes to it goes on.
          else yield { type: 'order.placed', item, count: Number(count) }
        },
      },
      {
        name: 'desk',
        subscribes: [/^order\./],
        async *process(event, turn) {
          const args = JSON.stringify('item' in event ? { item: event.item, count: event.count } : {})
          const [price] = yield* turn.runTools([{ id: `${turn.id}_price`, name: 'price', arguments: args }])
          if (!price || price.is_error) {
            yield { type: 'response.delta', delta: { type: 'text', text: `Sorry: ${price?.result}` } }
            return
          }
          // Not ours: the client declared it, so the call goes out and the result comes back.
          const [paid] = yield* turn.runTools([{ id: `${turn.id}_pay`, name: 'pay', arguments: price.result }])
          yield { type: 'response.delta', delta: { type: 'text', text: paid?.is_error ? 'Not paid.' : `Sold: ${price.result}` } }
        },
      },
    ],
  }
}
