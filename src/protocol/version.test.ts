import { expect } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { negotiateVersion } from './version.ts'

verifies('uamp:version:minor', 'another minor version is welcome', () => {
  for (const version of ['1', '1.0', '1.1', '1.20', '1.0.3']) expect(negotiateVersion(version)).toBe('1.0')
})

verifies('uamp:version:major', 'another major version is refused with what is supported', () => {
  for (const version of ['2.0', '0.9', '10.0', '', 'latest', '1.x', '1.']) {
    expect(() => negotiateVersion(version), version).toThrow(
      expect.objectContaining({
        code: 'version_mismatch',
        details: { server_version: '1.0', client_version: version, supported_versions: ['1.0'] },
      }),
    )
  }
})
