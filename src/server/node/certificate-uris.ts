import type { X509Certificate } from 'node:crypto'

/** One name: its kind, and what follows, which Node quotes as JSON wherever it could be taken for the beginning of another name. */
const NAME = /([A-Za-z0-9 .]+):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y

/** The URIs among the alternative names of a certificate (RFC 5280 §4.2.1.6). */
export function urisOf({ subjectAltName }: Pick<X509Certificate, 'subjectAltName'>): readonly string[] {
  const uris: string[] = []
  const text = subjectAltName ?? ''
  NAME.lastIndex = 0
  while (NAME.lastIndex < text.length) {
    const [, kind, name = ''] = NAME.exec(text) ?? []
    // None of them counts where one cannot be read.
    if (kind === undefined) return []
    if (kind === 'URI') uris.push(name.startsWith('"') ? (JSON.parse(name) as string) : name)
  }
  return uris
}
