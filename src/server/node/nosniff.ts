import type { ServerResponse } from 'node:http'

/** Browsers take an answer for what its type says, and not for what its beginning looks like. */
export const NOSNIFF = ['x-content-type-options', 'nosniff'] as const

/** On the bare response, before anybody answers: there is no answer that is forgotten, and no `Headers` is made for it. */
export function withoutSniffing(response: ServerResponse): void {
  response.setHeader(...NOSNIFF)
}
