/** The extension by which a uamp server tells what A2A has no words for: thoughts, tool calls, progress, usage. */
export const EVENTS_EXTENSION = 'https://uamp.dev/a2a/events/v1'

/** The names of the metadata of a2a-x402, version 0.2. */
export const X402 = {
  status: 'x402.payment.status',
  required: 'x402.payment.required',
  payload: 'x402.payment.payload',
  receipts: 'x402.payment.receipts',
  error: 'x402.payment.error',
} as const
