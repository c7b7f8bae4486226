import { UampError } from '../../protocol/errors.ts'
import type { HttpClient } from '../ports/http.ts'

/** The client for addresses that strangers name. Without one it refuses every call, because they could reach this machine's network. */
export function guardedOf(http: HttpClient): HttpClient {
  return http.guarded ?? UNGUARDED
}

const UNGUARDED: HttpClient = {
  request: () => Promise.reject(new UampError('not_supported', 'This runtime cannot call addresses that others name')),
}
