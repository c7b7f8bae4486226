import { plainAddress } from './address.ts'

/** True if the address is one of the operator's proxies. */
export type Trusts = (address: string) => boolean

/** What proxies say about a request: its sender, and the address that it asked for. */
export interface Forwarded {
  readonly address?: string | undefined
  readonly proto?: string | undefined
  readonly host?: string | undefined
  readonly prefix?: string | undefined
}

/** The headers in which proxies say it. Only those of trusted proxies count. */
export const FORWARDED_HEADERS = ['forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-prefix'] as const

/**
 * Reads what a trusted proxy says. Each proxy adds to the list that it got, and the client may have written its beginning: so lists are
 * read from their end, up to the first address that is not a proxy's. A proxy that writes one of the two kinds of headers often passes
 * on the other as the client sent it: if they contradict each other, neither counts.
 */
export function forwarded(headers: Headers, trusts: Trusts): Forwarded {
  const standard = standardHeader(headers.get('forwarded'), trusts)
  const usual = usualHeaders(headers, trusts)
  return {
    address: agreed(standard.address, usual.address),
    proto: agreed(standard.proto, usual.proto),
    host: agreed(standard.host, usual.host),
    prefix: usual.prefix,
  }
}

function agreed(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one.toLowerCase() === other.toLowerCase() ? one : undefined
}

function isProxy(text: string | undefined, trusts: Trusts): boolean {
  const address = text === undefined ? undefined : plainAddress(text)
  return address !== undefined && trusts(address)
}

/** RFC 7239 §4: `for=192.0.2.60;proto=https;host="example.com:8443", for=…`, one element for each proxy. */
function standardHeader(header: string | null, trusts: Trusts): Forwarded {
  if (header === null) return {}
  const elements = header.split(',').map(pairsOf)
  let at = elements.length - 1
  while (at > 0 && isProxy(elements[at]?.get('for'), trusts)) at--
  const element = elements[at]
  return { address: plainAddress(element?.get('for') ?? ''), proto: element?.get('proto'), host: element?.get('host') }
}

function pairsOf(element: string): ReadonlyMap<string, string> {
  return new Map(
    element.split(';').map((pair) => {
      const [name = '', ...value] = pair.split('=')
      const text = value.join('=').trim()
      return [name.trim().toLowerCase(), text.replace(/^"(.*)"$/, '$1')]
    }),
  )
}

/** `X-Forwarded-*`: the entries of one proxy are equally far from the end of each list, unless a proxy began a new list. */
function usualHeaders(headers: Headers, trusts: Trusts): Forwarded {
  const list = (name: string): string[] | undefined =>
    headers
      .get(name)
      ?.split(',')
      .map((entry) => entry.trim())
  const clients = list('x-forwarded-for') ?? []
  let back = 0
  while (back < clients.length - 1 && isProxy(clients.at(-1 - back), trusts)) back++
  const entry = (name: string): string | undefined => {
    const entries = list(name)
    return entries?.at(-1 - Math.min(back, entries.length - 1))
  }
  return {
    address: plainAddress(clients.at(-1 - back) ?? ''),
    proto: entry('x-forwarded-proto'),
    host: entry('x-forwarded-host'),
    prefix: entry('x-forwarded-prefix'),
  }
}
