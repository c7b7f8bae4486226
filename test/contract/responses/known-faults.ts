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

export const FAULTS: readonly Fault[] = []

export function faultOf({ shape, transport, mode }: Cell): Fault | undefined {
  return FAULTS.find((fault) => fault.shape === shape && fault.cells[transport.name]?.includes(mode))
}
