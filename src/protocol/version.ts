import { UampError } from './errors.ts'

/** The version this package speaks. */
export const UAMP_VERSION = '1.0'
const SUPPORTED_VERSIONS = ['1.0']

/**
 * UAMP events §14: minor versions only add, so any `1.x` is accepted, but no other major version. An absent version counts as ours,
 * because the portal's `session.create` has none.
 */
export function negotiateVersion(clientVersion: string | undefined): string {
  if (clientVersion === undefined || /^1(\.\d+)*$/.test(clientVersion)) return UAMP_VERSION
  throw new UampError('version_mismatch', `This server speaks UAMP ${UAMP_VERSION}, not ${clientVersion}`, {
    details: { server_version: UAMP_VERSION, client_version: clientVersion, supported_versions: SUPPORTED_VERSIONS },
  })
}
