import { refusalWith } from '../refusal.ts'
import type { Told } from '../errors.ts'

/** What `error.data` holds before 1.0, where its form is free. */
export function errorData({ reason, details }: Told): object {
  return { reason, ...details }
}

/** Where 1.0.1 says 400 for everything. */
const STATUS: Readonly<Record<string, number>> = { TASK_NOT_CANCELABLE: 409, CONTENT_TYPE_NOT_SUPPORTED: 415 }

/** REST of 0.3: the error of JSON-RPC is the body. */
export const restV03Refusal = refusalWith('application/json', ({ code, message, ...rest }) => ({
  code,
  message,
  data: errorData({ code, message, ...rest }),
}))

export function statusOf(reason: unknown): { readonly status: number } | undefined {
  const status = typeof reason === 'string' ? STATUS[reason] : undefined
  return status === undefined ? undefined : { status }
}
