/** The extension by which a uamp server tells what A2A has no words for: thoughts, tool calls, progress, usage. */
export const EVENTS_EXTENSION = 'https://uamp.dev/a2a/events/v1'

/** a2a-x402, version 0.2. */
export const X402_EXTENSION = 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2'

/** The names of that extension's metadata. */
export const X402 = {
  status: 'x402.payment.status',
  required: 'x402.payment.required',
  payload: 'x402.payment.payload',
  receipts: 'x402.payment.receipts',
  error: 'x402.payment.error',
} as const
