/** Fields of JSON that others wrote: what is not of the kind that it should be is not there. */
import { isRecord } from '../../protocol/json.ts'
import type { Struct } from './model.ts'

/** ts-proto writes an empty text where there is none. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

export function struct(value: unknown): Struct | undefined {
  return isRecord(value) && Object.keys(value).length > 0 ? value : undefined
}
