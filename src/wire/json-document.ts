import { fingerprint } from '../protocol/fingerprint.ts'

/** Caches keep a document for five minutes; then they ask whether it has changed. */
const CACHE = 'public, max-age=300'

/** Answers with a document that does not change while the process runs. It is made once, on the first request. */
export function jsonDocument(make: () => unknown): (request: Request) => Response {
  let made: { readonly text: string; readonly etag: string } | undefined
  return ({ headers }) => {
    if (!made) {
      const text = JSON.stringify(make())
      made = { text, etag: `"${fingerprint(text)}"` }
    }
    const { text, etag } = made
    const cached = { etag, 'cache-control': CACHE }
    const known = headers.get('if-none-match')
    if (known !== null && namesTag(known, etag)) return new Response(null, { status: 304, headers: cached })
    return new Response(text, { headers: { ...cached, 'content-type': 'application/json' } })
  }
}

/** Whether `If-None-Match` has this tag (RFC 9110 §13.1.2). */
export function namesTag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
