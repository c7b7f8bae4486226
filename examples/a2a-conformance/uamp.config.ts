import { conformance } from './agent.ts'

/**
 * The kit for 1.0 reads the card without saying which version it speaks, and takes nothing in it that 1.0 does not have. The one for
 * 0.3 wants its own fields: `A2A_CARD=hybrid uamp serve examples/a2a-conformance`.
 */
export default {
  agents: [conformance],
  a2a: { card: process.env['A2A_CARD'] ?? '1.0' },
  // The kit's webhook is on this machine, which is else never called.
  outbound: { allow: ['localhost', '127.0.0.1'] },
}
