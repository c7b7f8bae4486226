import { UampError } from '../protocol/errors.ts'

type Tokens = Readonly<Record<string, string>>

/** `name:secret`, each. What is wrong is told without the text: it holds a secret. */
export function parseTokens(texts: readonly string[], source: string): Tokens {
  const tokens: Record<string, string> = {}
  for (const text of texts) {
    const at = text.indexOf(':')
    const name = text.slice(0, at).trim()
    const secret = text.slice(at + 1).trim()
    if (at < 0 || name === '' || secret === '') {
      throw new UampError('invalid_request', `${source}: a token is written name:secret, as in alice:s3cret`)
    }
    if (Object.hasOwn(tokens, name)) throw new UampError('invalid_request', `${source}: two tokens are called "${name}"; give each a name`)
    tokens[name] = secret
  }
  return tokens
}

/** `UAMP_TOKENS=name:secret,name2:secret2`. */
export function environmentTokens(text: string | undefined): Tokens {
  const parts = (text ?? '').split(',').filter((part) => part.trim() !== '')
  return parseTokens(parts, 'UAMP_TOKENS')
}
