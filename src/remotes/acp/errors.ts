import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord } from '../../protocol/json.ts'
import { RpcError } from '../../wire/json-rpc.ts'

/** What an agent refuses, as our clients are told. */
export function explained(thrown: unknown): unknown {
  if (!(thrown instanceof RpcError)) return thrown
  const { code, message, data } = thrown
  if (code === -32402) return new UampError('payment_required', message, isRecord(data) ? { details: data } : {})
  if (code === -32000) return new UampError('provider_error', `The agent wants its user to sign in: ${message}`)
  const known = fieldsOf(data)['code']
  return new UampError('provider_error', message, { details: { remote_code: typeof known === 'string' ? known : code } })
}
