import { endingSoon, readTls, type TlsFiles } from '../../server/node/tls.ts'
import { note, ok, wrong, wrongBy, type Check } from './check.ts'

const RENEW = 'renew it; a running server reads the new files by itself'

/** Checks the certificate that the server would show. */
export async function checkTls(files: TlsFiles | undefined, now = Date.now()): Promise<Check[]> {
  if (!files) return []
  try {
    const pair = await readTls(files)
    const ends = endingSoon(pair, now)
    if (ends === undefined) return [ok('tls', `a certificate for ${pair.names} until ${pair.until.toISOString().slice(0, 10)}`)]
    return [pair.until.getTime() < now ? wrong('tls', ends, RENEW) : note('tls', ends, RENEW)]
  } catch (thrown) {
    return [wrongBy('tls', thrown, '--tls-cert and --tls-key, or `tls` in the config')]
  }
}
