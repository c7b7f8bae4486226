import type { ServerEvent } from '../protocol/events.ts'

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What the server sends is trusted to be what its type says; what is no event at all is skipped. */
export function parseEvent(text: string): ServerEvent | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) && typeof value['type'] === 'string' ? (value as unknown as ServerEvent) : undefined
  } catch {
    return undefined
  }
}
