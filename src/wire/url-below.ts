/** The URL of a path below a base URL. Queries of both stay, because some servers take their version or key there. */
export function urlBelow(base: string, path: string): string {
  const [address = '', ...given] = base.split('?')
  const [below = '', ...asked] = path.split('?')
  const query = [given.join('?'), asked.join('?')].filter((part) => part !== '').join('&')
  return `${address.replace(/\/+$/, '')}${below}${query === '' ? '' : `?${query}`}`
}
