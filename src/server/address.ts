const ADDRESS = /^(?:\[([\da-f:.%\w-]+)\](?::\d{1,5})?|((?:\d{1,3}\.){3}\d{1,3})(?::\d{1,5})?|([\da-f]*:[\da-f:.]*(?:%[\w-]+)?))$/i

/**
 * One spelling for each address: without brackets, port and zone, and `::ffff:10.0.0.1` as IPv4. `undefined` for a text that is not an
 * address, such as `unknown` or a name that a proxy made up (RFC 7239 §6).
 */
export function plainAddress(text: string): string | undefined {
  const [, inBrackets, v4, bare] = ADDRESS.exec(text.trim()) ?? []
  if (v4 !== undefined) return v4.split('.').every((part) => Number(part) < 256) ? v4 : undefined
  const groups = groupsOf((inBrackets ?? bare ?? '').split('%')[0] ?? '')
  if (!groups) return undefined
  const [, , , , , mark = 0, high = 0, low = 0] = groups
  if (mark === 0xffff && groups.slice(0, 5).every((group) => group === 0)) return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  return groups.map((group) => group.toString(16)).join(':')
}

/** The eight numbers of an IPv6 address. */
function groupsOf(text: string): number[] | undefined {
  const url = `http://[${text}]`
  if (!text.includes(':') || !URL.canParse(url)) return undefined
  const [before = '', after] = new URL(url).hostname.slice(1, -1).split('::')
  const numbers = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)))
  if (after === undefined) return numbers(before)
  const [start, end] = [numbers(before), numbers(after)]
  return [...start, ...Array.from({ length: 8 - start.length - end.length }, () => 0), ...end]
}
