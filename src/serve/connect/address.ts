import { UampError } from '../../protocol/errors.ts'

/** `wss://host/ws` of what a user writes: `https://host`, `wss://host`. */
export function addressOf(url: string | URL): string {
  let address: URL
  try {
    address = new URL(url)
  } catch {
    throw new UampError('invalid_request', `"${String(url)}" is not the address of a host: write wss://host/ws`)
  }
  if (!/^(https?|wss?):$/.test(address.protocol)) {
    throw new UampError('invalid_request', `A host is reached over wss://, not ${address.protocol}//`)
  }
  address.protocol = address.protocol.replace(/^http/, 'ws')
  if (!/\/(ws|uamp)\/?$/.test(address.pathname)) address.pathname = `${address.pathname.replace(/\/+$/, '')}/ws`
  return address.href
}
