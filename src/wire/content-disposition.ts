/** RFC 6266 §4.3: a plain name for old clients, and the exact one. */
export function disposition(type: 'inline' | 'attachment', filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["%\\]/g, '_')
  const exact = encodeURIComponent(filename.toWellFormed()).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return `${type}; filename="${plain}"; filename*=UTF-8''${exact}`
}
