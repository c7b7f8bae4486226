import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { GuardedHttp } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import { AddressRules, isLocalName, plainHost } from './address-rules.ts'
import { nodeHttp } from './http-client.ts'

/** Connections to one host at a time, unless it is said otherwise: whoever names a host must not be able to flood it. */
const PER_HOST = 4
/** Below it stand services that were never meant to read HTTP: mail, shells, directories. */
const FIRST_FREE_PORT = 1024

/** `URL` takes line breaks out and encodes others: what is called would not be what was written, and may have been logged or compared. */
const UNSEEN = /[\p{Cc}\p{Z}]/u

export interface GuardOptions {
  /** Hosts, hosts with their port, and networks (`10.0.0.0/8`) that may be called though they are private; also over plain `http`. */
  readonly allow?: readonly string[]
  /** Connections to one host at a time; more requests wait for one. */
  readonly perHost?: number
  /** All addresses of a name. Default: what the system says. */
  readonly resolve?: (name: string) => Promise<readonly LookupAddress[]>
}

/**
 * Calls only what is on the public internet. A name is resolved here, all its addresses are checked, and the connection goes to
 * the checked ones: a name that answers differently the second time (DNS rebinding) gains nothing.
 */
export function guardedHttp({ allow = [], perHost = PER_HOST, resolve = resolveAll }: GuardOptions = {}): GuardedHttp & { close(): void } {
  const rules = new AddressRules(allow)
  const clients = {
    /** For hosts that were allowed by name, wherever they are. */
    free: nodeHttp({ lookup: lookupOf(resolve), maxSockets: perHost }),
    checked: nodeHttp({ lookup: lookupOf(checked), maxSockets: perHost }),
  }

  async function checked(name: string): Promise<readonly LookupAddress[]> {
    const addresses = await resolve(name)
    // One bad address among good ones is an attack, or a mistake that looks like one.
    if (addresses.length === 0 || addresses.some(({ address }) => rules.forbids(address)))
      throw forbidden(`${name} is not on the public internet`)
    return addresses
  }

  function refuses(text: string): string | undefined {
    if (UNSEEN.test(text)) return 'it contains a space or a control character'
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return 'it is not an http or https URL'
    if (url.username !== '' || url.password !== '') return 'it contains a user name or a password'
    if (rules.allowsHost(url)) return undefined
    const host = plainHost(url.hostname)
    if (isLocalName(host)) return `${host} is this machine`
    if (isIP(host) !== 0 && rules.forbids(host)) return `${host} is not on the public internet`
    if (url.port !== '' && Number(url.port) < FIRST_FREE_PORT && url.port !== '80') return `port ${url.port} is not for HTTP`
    if (url.protocol === 'http:' && !rules.allowsAddress(host)) return 'it is not https'
    return undefined
  }

  return {
    refuses,
    async request(request) {
      const reason = refuses(request.url)
      if (reason !== undefined) throw forbidden(`This URL is not called: ${reason}`)
      return (rules.allowsHost(new URL(request.url)) ? clients.free : clients.checked).request(request)
    },
    close() {
      clients.free.close()
      clients.checked.close()
    },
  }
}

function forbidden(message: string): UampError {
  return new UampError('forbidden', message)
}

function resolveAll(name: string): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    dnsLookup(name, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
}

/** What a socket asks instead of the system. It connects to what is answered here and asks nobody else. */
function lookupOf(resolve: (name: string) => Promise<readonly LookupAddress[]>): LookupFunction {
  return (name, { all }, answer) => {
    resolve(name).then(
      (addresses) => {
        const [first] = addresses
        if (all) answer(null, [...addresses])
        else answer(null, first?.address ?? '', first?.family)
      },
      (error: unknown) => answer(error as Error, all ? [] : ''),
    )
  }
}
