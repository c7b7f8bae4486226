import { readFileSync } from 'node:fs'
import { UampError } from '../protocol/errors.ts'

type Tokens = Readonly<Record<string, string>>

/** Parses `name:secret` texts. Errors do not repeat the text, because it holds a secret. */
export function parseTokens(texts: readonly string[], source: string): Tokens {
  const tokens = new Map<string, string>()
  for (const text of texts) {
    const at = text.indexOf(':')
    const name = text.slice(0, at).trim()
    const secret = text.slice(at + 1).trim()
    if (at < 0 || name === '' || secret === '') {
      throw new UampError('invalid_request', `${source}: a token is written name:secret, as in alice:3f9c0d5e81b24a67`)
    }
    if (tokens.has(name)) throw new UampError('invalid_request', `${source}: two tokens are called "${name}"; give each a name`)
    tokens.set(name, secret)
  }
  // Not `tokens[name] = …`: the name `__proto__` would be lost, and the server would be open.
  return Object.fromEntries(tokens)
}

/** `UAMP_TOKENS=name:secret,name2:secret2`. */
export function environmentTokens(text: string | undefined): Tokens {
  const parts = (text ?? '').split(',').filter((part) => part.trim() !== '')
  return parseTokens(parts, 'UAMP_TOKENS')
}

/** One `name:secret` a line. Empty lines, and lines that begin with #, are skipped. */
export function fileTokens(file: string | undefined): Tokens {
  if (file === undefined) return {}
  const lines = read(file)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#'))
  if (lines.length === 0) throw new UampError('invalid_request', `${file} contains no token: write a line name:secret for each caller`)
  return parseTokens(lines, file)
}

export interface SecretFlags {
  readonly token?: string
  readonly tokenFile?: string
}

/** The secret of a client. Everybody on this machine can read one on the command line, but not one in a file or the environment. */
export function secretOf({ token, tokenFile }: SecretFlags, env: NodeJS.ProcessEnv): string | undefined {
  if (token !== undefined) return token
  if (tokenFile === undefined) return env['UAMP_TOKEN'] || undefined
  const secret = read(tokenFile).trim()
  if (secret === '' || /\s/.test(secret)) throw new UampError('invalid_request', `${tokenFile} must contain one secret and nothing else`)
  return secret
}

/** The token that pays. Never on the command line, where everybody on this machine can read it. */
export function payTokenOf(file: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  return file === undefined ? env['UAMP_PAY_TOKEN'] || undefined : secretOf({ tokenFile: file }, env)
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new UampError('invalid_request', `The token file ${file} cannot be read: ${whyUnreadable(cause)}`, { cause })
  }
}

export function whyUnreadable(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EISDIR') return 'it is a folder'
  return code === 'EACCES' ? 'this user may not read it' : (code ?? 'unknown reason')
}
