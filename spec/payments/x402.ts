import { payments } from '../requirement.ts'

/** What a server that is paid by x402 does. */
export const x402 = payments('x402', {
  'x402.required': ['HTTP transport 2 and 1', 'A 402 has the header PAYMENT-REQUIRED, and a body that clients of version 1 can read.'],
  'x402.pay-v2': ['HTTP transport 2', 'A payment in PAYMENT-SIGNATURE is verified before the work, and settled before the answer is told.'],
  'x402.pay-v1': ['HTTP transport 1', 'A payment in X-PAYMENT buys an answer, too.'],
  'x402.receipt': [
    'HTTP transport 2 and 1',
    'A paid answer has the receipt in PAYMENT-RESPONSE and X-PAYMENT-RESPONSE, or in its last chunk.',
  ],
  'x402.exact': ['scheme exact, EVM', 'A payment of another amount, asset, network, address or time is refused before anybody is asked.'],
  'x402.malformed': ['HTTP transport 2', 'What cannot be read as a payment is answered with 400.'],
  'x402.once': ['scheme exact, EVM', 'A payment buys one answer, also if it comes several times at once.'],
  'x402.facilitator': ['facilitator', 'An answer of a facilitator that does not fit is not believed, and moves no money in the ledger.'],
  'x402.pending': [
    'facilitator',
    'Who sends a payment again that was in doubt, and has been settled, gets the answer without paying twice.',
  ],
  'x402.killed': ['facilitator', 'A server that dies in a settlement finds out what became of it when it starts again.'],
  'x402.secret': ['HTTP transport 2', 'No proof is left in the store, in the log or in an answer after it was used.'],
  'x402.everywhere': ['transports', 'A proof pays on every protocol, in its event, its header or its `payment_token`.'],
  'x402.a2a': ['a2a-x402 0.2 §5', 'A task asks for payment in its metadata, takes it in a message, and ends with the receipt.'],
  'x402.a2a-card': ['a2a-x402 0.2 §3', 'The card announces the extension if the server is paid by x402.'],
})

/** Mandates of AP2. */
export const ap2 = payments('AP2 0.2', {
  'ap2.verified': ['Payment Mandate', 'A Payment Mandate of a configured issuer is verified, and pays once.'],
  'ap2.unknown-issuer': ['Payment Mandate', 'A mandate of an issuer that is not configured is refused.'],
})
