/** The mistake in an address of a server, without the address, which may hold a secret. */
export function addressMistake(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return 'must begin with http:// or https://, such as "http://localhost:8000/v1"'
  if (!URL.canParse(text)) return 'is not an address: write it as in "http://localhost:8000/v1"'
  const { username, password, hash } = new URL(text)
  if (username !== '' || password !== '') return 'must not contain a name or a password: use "apiKey" or "headers"'
  return hash === '' && !text.endsWith('#') ? undefined : 'must not contain "#": servers never see what follows it'
}

/** One way to write an address on this machine: `localhost`, `127.0.0.1` and `[::1]` are the same server, whichever a user typed. */
export function oneLoopback(url: string): string {
  return url.replace(/^http:\/\/(?:localhost|\[::1\])(?=[:/]|$)/, 'http://127.0.0.1')
}
