import type { ToolResult } from '../../protocol/content.ts'
import type { Turn } from '../ports/agent.ts'
import type { Prepared } from './tool-call.ts'

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
