/** A2A's errors as ours. */
import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { REASONS } from '../../wire/a2a/errors.ts'

const SHOWN = 300

/** By JSON-RPC code. The generations before 1.0 have the same numbers. */
const BY_CODE = new Map<unknown, string>(Object.entries(REASONS).map(([reason, { code }]) => [code, reason]))
/** Our code by the reason of 1.0. What the other side cannot do, or did wrong, is not our client's mistake. */
const CODES = new Map<string, ErrorCode>([
  ...Object.entries(REASONS).map(([reason, { of }]) => [reason, of] as const),
  ['METHOD_NOT_FOUND', 'not_supported'],
  ['CONTENT_TYPE_NOT_SUPPORTED', 'not_supported'],
  ['INTERNAL', 'provider_error'],
])

interface Failure {
  readonly reason: string | undefined
  readonly message: string | undefined
}

/** The failure that a body tells of: JSON-RPC's `error`, REST's `error` of 1.0, or 0.3's code and message alone. */
export function failureIn(body: unknown): Failure | undefined {
  if (!isRecord(body)) return undefined
  const error = body['error'] ?? (typeof body['code'] === 'number' && typeof body['message'] === 'string' ? body : undefined)
  if (!isRecord(error)) return undefined
  const { code, message, data, details } = error
  return {
    reason: reasonIn(data) ?? reasonIn(details) ?? BY_CODE.get(code),
    message: typeof message === 'string' && message !== '' ? message.slice(0, SHOWN) : undefined,
  }
}

/** `google.rpc.ErrorInfo` among the details. */
function reasonIn(details: unknown): string | undefined {
  if (!Array.isArray(details)) return undefined
  const reasons = details.map((detail: unknown) => (isRecord(detail) ? detail['reason'] : undefined))
  return reasons.find((reason): reason is string => typeof reason === 'string' && CODES.has(reason))
}

/** A failure as one of our errors. `refused` is the error that its HTTP status led to, if it had one. */
export function toError(name: string, { reason, message }: Failure, refused?: UampError): UampError {
  const of = reason === undefined ? undefined : CODES.get(reason)
  const details = { ...refused?.details, ...(reason !== undefined && { remote_code: reason }) }
  return new UampError(of ?? refused?.code ?? 'provider_error', `${name} refused${message === undefined ? '' : `: ${message}`}`, {
    ...(refused?.cause !== undefined && { cause: refused.cause }),
    ...(Object.keys(details).length > 0 && { details }),
  })
}

/** The reason that the other side gave, by its name in A2A. */
export function reasonOf(thrown: unknown): string | undefined {
  const reason = thrown instanceof UampError ? thrown.details?.['remote_code'] : undefined
  return typeof reason === 'string' ? reason : undefined
}

export function statusOf(thrown: unknown): number | undefined {
  const status = thrown instanceof UampError ? thrown.details?.['status'] : undefined
  return typeof status === 'number' ? status : undefined
}

/** Whether the other side does not understand this version or binding, whatever we ask. */
export function isOtherTongue(thrown: unknown): boolean {
  const reason = reasonOf(thrown)
  if (reason === 'METHOD_NOT_FOUND' || reason === 'VERSION_NOT_SUPPORTED') return true
  return reason === undefined && [404, 405, 406, 415, 501].includes(statusOf(thrown) ?? 0)
}
