/** The path of an absolute URL, as it was sent. `new URL` costs more than the rest of the routing. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  for (let i = start; i < url.length; i++) {
    const char = url.charCodeAt(i)
    if (char === 63 /* ? */ || char === 35 /* # */) return url.slice(start, i)
  }
  return url.slice(start)
}
