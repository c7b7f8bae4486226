import { UampError } from '../../protocol/errors.ts'

/** `wss://host/ws` of what a user writes: `https://host`, `wss://host`, or the address of an agent there. */
export function addressOf(url: string | URL): string {
  const given = String(url)
  if (!URL.canParse(given) || !given.includes('://')) {
    // `localhost:8787` would be a URL, too, with the name for its scheme.
    const meant = isHostAndPort(given) ? `ws://${given}/ws, or wss:// where there is TLS` : 'wss://host/ws'
    throw new UampError('invalid_request', `"${given}" is not the address of a host: write ${meant}`)
  }
  const address = new URL(given)
  if (!/^(https?|wss?):$/.test(address.protocol)) {
    throw new UampError('invalid_request', `A host is reached over wss://, not ${address.protocol}//`)
  }
  address.protocol = address.protocol.replace(/^http/, 'ws')
  if (!/\/(ws|uamp)\/?$/.test(address.pathname)) address.pathname = `${serverPath(address.pathname)}/ws`
  return address.href
}

/** True for what users often write in place of an address. */
export function isHostAndPort(text: string): boolean {
  return /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i.test(text)
}

/** The path of a server, without that of an agent there, and without a slash at its end. */
export function serverPath(path: string): string {
  return path.replace(/\/+$/, '').replace(/\/agents\/[^/]+$/, '')
}
