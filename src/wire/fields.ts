/** Fields of JSON that others wrote: a field of the wrong type counts as missing. */
import { isRecord } from '../protocol/json.ts'

/** ts-proto writes an empty text where there is none. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

export function struct(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isRecord(value) && Object.keys(value).length > 0 ? value : undefined
}

/** Without the fields that are undefined, so that spreading it over another object keeps the fields of that. */
export function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {}
  // Not `Object.entries`: this runs for every answer, with many fields that are undefined.
  for (const name in fields) if (fields[name] !== undefined) kept[name] = fields[name] as Exclude<T[typeof name], undefined>
  return kept
}
