import * as z from 'zod/mini'

/** A tool that is no function. Whether the agent has it is checked when the agent is known. */
export const HostedTool = z.looseObject({
  // Aborts, so that for a malformed function the other alternative explains the mistake.
  type: z.string().check(z.refine((type) => type !== 'function', { error: 'must have a name', abort: true })),
})
