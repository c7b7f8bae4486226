import { UampError } from '../protocol/errors.ts'

const PREFIX = /^(?:\/[A-Za-z0-9._~-]+)+$/

/** The path that a server is mounted under: `/ai`, or nothing. */
export function prefixFrom(given = ''): string {
  const prefix = given.replace(/\/+$/, '')
  if (prefix === '' || PREFIX.test(prefix)) return prefix
  throw new UampError('invalid_request', `"${given}" is not a prefix of paths: write it like /ai`)
}

/** A path without the prefix. Some routers have removed it already. */
export function below(prefix: string, path: string): string {
  if (prefix === '' || !path.startsWith(prefix)) return path
  if (path.length === prefix.length) return '/'
  return path[prefix.length] === '/' ? path.slice(prefix.length) : path
}
