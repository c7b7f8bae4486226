import type { ToolResult } from '../../protocol/content.ts'
import { toolPriceOf } from '../basics/price.ts'
import type { Turn } from '../ports/agent.ts'
import type { AgentPrice } from '../ports/payments.ts'
import type { Tool, ToolPrice } from '../ports/skill.ts'
import type { Prepared } from './tool-call.ts'

/** The tools of an agent with the prices that it gives them by name. A tool's own price counts first. */
export function withPrices(tools: readonly Tool[], price: AgentPrice | undefined): readonly Tool[] {
  if (!price?.tools) return tools
  const { tools: named, currency } = price
  return tools.map((tool) => {
    const own = tool.price === undefined && Object.hasOwn(named, tool.name) ? named[tool.name] : undefined
    return own === undefined ? tool : pricedTool(tool, toolPriceOf(own, currency))
  })
}

/** Not a copy: a tool may be of a class. */
function pricedTool(tool: Tool, price: ToolPrice): Tool {
  return new Proxy(tool, {
    get(target, name) {
      if (name === 'price') return price
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
    has: (target, name) => name === 'price' || Reflect.has(target, name),
  })
}

/** Runs a tool that may cost something. It is charged before it runs, and costs nothing if it fails. */
export async function paidTool(turn: Turn, { call, tool, args }: Prepared, run: () => Promise<ToolResult>): Promise<ToolResult> {
  const { price } = tool
  if (!price) return run()
  const amount = 'lock' in price ? await price.lock(args) : price.amount
  const charged = await turn.charge({
    amount,
    key: `tool ${call.id}`,
    reason: price.reason ?? `A call of "${tool.name}"`,
    ...(price.currency !== undefined && { currency: price.currency }),
  })
  try {
    const result = await run()
    if (result.is_error) charged.settle('0')
    else if ('settle' in price && price.settle) charged.settle(await price.settle(result.result, args))
    return result
  } catch (thrown) {
    charged.settle('0')
    throw thrown
  }
}
