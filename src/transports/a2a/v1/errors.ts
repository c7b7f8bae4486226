import type { Told } from '../errors.ts'

const DOMAIN = 'a2a-protocol.org'

/** What A2A 1.0 has in `error.data` (§9.5) and in `error.details` (§11.6): objects that say of which type they are. */
export function errorDetails({ reason, message, details }: Told): readonly object[] {
  const { field, ...rest } = details
  const metadata = Object.entries(rest).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
  return [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason,
      domain: DOMAIN,
      ...(metadata.length > 0 && { metadata: Object.fromEntries(metadata) as object }),
    },
    ...(typeof field === 'string'
      ? [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field, description: message }] }]
      : []),
  ]
}
