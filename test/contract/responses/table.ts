import { faultOf } from './known-faults.ts'
import type { Seen } from './seen.ts'
import { LOST, SHAPES, truthOf, type ShapeName } from './shapes.ts'
import { LIVE, MODES, type Limit, type Mode, type Transport } from './transport.ts'
import { TRANSPORTS } from './transports/index.ts'

export interface Cell {
  readonly shape: ShapeName
  readonly transport: Transport
  readonly mode: Mode
}

/** What the client of a cell sees, with the limits of its protocol that make it less than the truth; or why there is no such cell. */
export type Verdict = { readonly seen: Seen; readonly because: readonly string[] } | { readonly no: string }

/** What holds for every protocol. */
const COMMON: readonly Limit[] = [{ why: 'the connection breaks with the process', shapes: [LOST], modes: LIVE }]

export function cells(transports = TRANSPORTS): Cell[] {
  return transports.flatMap((transport) =>
    (Object.keys(SHAPES) as ShapeName[]).flatMap((shape) => MODES.map((mode) => ({ shape, transport, mode }))),
  )
}

/** The truth of the shape, less what the protocol cannot show. */
export function verdictOf({ shape, transport, mode }: Cell): Verdict {
  const limits = [...COMMON, ...transport.limits].filter(
    ({ shapes, modes }) => (shapes?.includes(shape) ?? true) && (modes?.includes(mode) ?? true),
  )
  const none = limits.find(({ sees }) => sees === undefined)
  if (none) return { no: none.why }
  let seen = truthOf(shape)
  const because: string[] = []
  for (const { why, sees } of limits) {
    const less = { ...seen, ...sees?.(seen) }
    if (JSON.stringify(less) !== JSON.stringify(seen)) because.push(why)
    seen = less
  }
  return { seen, because }
}

/** What each mode shows that the transport has: the verdict, or the known fault in its place. */
export function expectedOf(transport: Transport, shape: ShapeName): Partial<Record<Mode, Seen>> {
  const seen: Partial<Record<Mode, Seen>> = {}
  for (const mode of MODES) {
    const cell = { shape, transport, mode }
    const verdict = verdictOf(cell)
    if (!('no' in verdict)) seen[mode] = { ...verdict.seen, ...faultOf(cell)?.sees }
  }
  return seen
}
