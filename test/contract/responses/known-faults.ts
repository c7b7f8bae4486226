import type { Seen } from './seen.ts'
import type { ShapeName } from './shapes.ts'
import type { Cell } from './table.ts'
import type { Mode } from './transport.ts'

/** What cells show instead of what they could. The test of such a cell fails when the fault is gone: then remove it here. */
export interface Fault {
  readonly what: string
  readonly shape: ShapeName
  readonly cells: Readonly<Record<string, readonly Mode[]>>
  /** What is seen instead of what the verdict says. */
  readonly sees: Partial<Seen>
}

const SPEECH: ShapeName = 'speech that is only streamed'

export const FAULTS: readonly Fault[] = [
  {
    what: 'the words of speech that is only streamed are not in the output, so whoever reads the answer later, or whole, gets none',
    shape: SPEECH,
    cells: {
      'Chat Completions': ['whole'],
      Responses: ['whole', 'whole again'],
      'A2A 1.0': ['whole', 'whole again'],
      'A2A 0.3': ['whole', 'streamed again', 'whole again'],
      'ACP, WebSocket': ['streamed again'],
      'ACP, HTTP': ['streamed again'],
    },
    sees: { text: '' },
  },
  {
    what: 'for the same reason the end of a stream, which repeats the whole text, lacks words that were told in pieces',
    shape: SPEECH,
    cells: {
      'UAMP events, WebSocket': ['streamed', 'streamed again', 'resumed'],
      'UAMP events, SSE': ['streamed', 'streamed again', 'resumed'],
      Responses: ['streamed', 'streamed again', 'resumed'],
      'Responses, WebSocket': ['streamed'],
    },
    sees: { end: 'the whole is "", the pieces are "Good day."' },
  },
  {
    what: 'usage that comes with `response.done` is not told by the extension of A2A that tells usage',
    shape: 'everything in response.done',
    cells: { 'A2A 1.0': ['streamed', 'resumed'], 'A2A 0.3': ['streamed', 'resumed'] },
    sees: { usage: 0 },
  },
]

export function faultOf({ shape, transport, mode }: Cell): Fault | undefined {
  return FAULTS.find((fault) => fault.shape === shape && fault.cells[transport.name]?.includes(mode))
}
