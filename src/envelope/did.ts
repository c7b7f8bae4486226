import { envelopeError } from './codes.ts'

const DID_CHARS = 512
/** A host of the DNS, or localhost, with an encoded port (did:web §3.1). An address is no name that anybody could vouch for. */
const HOST = /^(?=.{1,253}(?:%3A|$))(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?:%3A([1-9]\d{0,4}))?$/i
const MOST_PORT = 65_535
const SEGMENT = /^[A-Za-z0-9._-]+$/

/** A `did:web` in its parts. */
export interface WebDid {
  /** As it is compared: the host in lower case. */
  readonly did: string
  /** `example.com:8443` */
  readonly host: string
  readonly path: readonly string[]
}

/** Undefined: it is not a `did:web`, or one that could lead elsewhere than to its host. */
export function webDid(did: string): WebDid | undefined {
  if (did.length > DID_CHARS || !did.startsWith('did:web:')) return undefined
  const [name = '', ...path] = did.slice('did:web:'.length).split(':')
  const named = HOST.exec(name)
  if (!named || Number(named[1] ?? 0) > MOST_PORT || !path.every((part) => SEGMENT.test(part) && part !== '.' && part !== '..'))
    return undefined
  const host = name.toLowerCase().replace('%3a', ':')
  return { did: ['did:web', host.replace(':', '%3A'), ...path].join(':'), host, path }
}

/** Where the document of a `did:web` is. Throws `4.01` if it is none. */
export function documentUrl(did: string): string {
  const web = webDid(did)
  if (!web) throw envelopeError('4.01', 'The sender is not a did:web', 'did')
  return `https://${web.host}/${web.path.length === 0 ? '.well-known' : web.path.join('/')}/did.json`
}

/** Addresses of this machine. A `did:web` has a name in their place. */
const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|\[::1\])(?=:|$)/

/** The `did:web` of a URL, such as the one of this server or of an agent below it. */
export function didOfUrl(url: string): string {
  const { host, pathname } = new URL(url)
  const path = pathname.split('/').filter((part) => part !== '')
  return ['did:web', host.replace(LOOPBACK, 'localhost').replaceAll(':', '%3A'), ...path].join(':')
}

/** The DID of a DID URL, which may name a key after `#`. */
export function didOf(didUrl: string): string {
  const [did = ''] = didUrl.split('#', 1)
  return webDid(did)?.did ?? did
}

/** A DID URL as it is compared. In a document it may be relative to its DID (DID Core §5.2). */
export function didUrl(id: string, did = ''): string {
  const at = id.indexOf('#')
  if (at === -1) return didOf(id)
  return `${didOf(at === 0 ? did : id)}${id.slice(at)}`
}

/** Whether two DIDs are one. The host of a `did:web` has no case. */
export function isSameDid(one: string, other: string): boolean {
  return didOf(one) === didOf(other)
}
