import { isRecord, type Slot } from './json.ts'

/** What stands under our own name where anybody may add something (`extensions`, `_meta`, `metadata`). */
export function uampIn(slot: Readonly<Slot> | null | undefined): Slot {
  const uamp = slot?.['uamp']
  return isRecord(uamp) ? uamp : {}
}
