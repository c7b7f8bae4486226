/** Objects in JSON that others wrote. Apart from `json.ts`, because the client has no room for schemas. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The fields of an object; none for any other value. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

/** The objects in an array; none for any other value. */
export function recordsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** Our own part of a slot where anybody may add something (`extensions`, `_meta`, `metadata`). */
export function uampIn(slot: Readonly<Record<string, unknown>> | null | undefined): Record<string, unknown> {
  const uamp = slot?.['uamp']
  return isRecord(uamp) ? uamp : {}
}
