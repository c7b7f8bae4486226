import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { GuardedHttp } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import { nodeHttp } from './http-client.ts'
import { AddressRules, isLocalName, plainHost } from './networks.ts'

/** The most connections to one host: a client that names a host must not be able to flood it. */
const PER_HOST = 4
/** Services below this port were never meant to read HTTP: mail, shells, directories. */
const FIRST_FREE_PORT = 1024

/** `URL` removes or encodes these, so the address that is called would differ from the one that was logged or compared. */
const UNSEEN = /[\p{Cc}\p{Z}]/u

export interface GuardOptions {
  /** Private hosts, with or without a port, and networks (`10.0.0.0/8`) that may be called, also over plain `http`. */
  readonly allow?: readonly string[]
  /** Connections to one host at a time. More requests wait for one. */
  readonly perHost?: number
  /** Gives all addresses of a name. Default: asks the system. */
  readonly resolve?: (name: string) => Promise<readonly LookupAddress[]>
}

/**
 * Calls only the public internet. It resolves a name itself, checks all its addresses, and connects to the checked ones, so that a name
 * which resolves differently the second time (DNS rebinding) gains nothing.
 */
export function guardedHttp({ allow = [], perHost = PER_HOST, resolve = resolveAll }: GuardOptions = {}): GuardedHttp & { close(): void } {
  const rules = new AddressRules(allow)
  const clients = {
    /** For hosts that are allowed by name, wherever they are. */
    free: nodeHttp({ lookup: lookupOf(resolve), maxSockets: perHost }),
    checked: nodeHttp({ lookup: lookupOf(checked), maxSockets: perHost }),
  }

  async function checked(name: string): Promise<readonly LookupAddress[]> {
    const addresses = await resolve(name)
    // One bad address among good ones is an attack, or looks like one.
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
      if (reason !== undefined) throw forbidden(`This URL may not be called: ${reason}`)
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

/** Resolves names for sockets, which ask nothing else. */
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
