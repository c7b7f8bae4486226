/** The extension by which a uamp server tells what A2A has no words for: thoughts, tool calls, progress, usage. */
export const EVENTS_EXTENSION = 'https://uamp.dev/a2a/events/v1'

/**
 * The extension by which a client declares tools that it runs itself. They are in the metadata of its message, under this name:
 * `{ "tools": […] }`, as UAMP events §8.6 has them. A call is a question of the task.
 */
export const TOOLS_EXTENSION = 'https://uamp.dev/a2a/tools/v1'

/** The extension that tells what an agent costs, in its `params`. It asks nothing of a client, and no address is behind it. */
export const PRICE_EXTENSION = 'urn:uamp:a2a:price:v1'

/** The names of the metadata of a2a-x402, version 0.2. */
export const X402 = {
  status: 'x402.payment.status',
  required: 'x402.payment.required',
  payload: 'x402.payment.payload',
  receipts: 'x402.payment.receipts',
  error: 'x402.payment.error',
} as const
