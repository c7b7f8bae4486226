import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { keysAt, verifySigned, type Verified } from '../../client/verify.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { signedIn, type Found } from '../verify/signed-in.ts'
import { harmless, painter } from '../print.ts'
import { whyUnreadable } from '../tokens.ts'

export interface VerifyFlags {
  readonly signature?: string
  readonly response?: string
  readonly request?: string
  readonly jwks?: string
  readonly issuer?: string
  readonly json?: true
}

/** Checks who signed an answer, and that it is what they signed. */
export async function verify(file: string | undefined, flags: VerifyFlags): Promise<number> {
  if (file === undefined && flags.signature === undefined) {
    throw new UampError('invalid_request', 'Name a file with a signed answer, "-" for standard input, or give --signature')
  }
  const { issuer } = flags
  if (issuer !== undefined && !/^https?:\/\/./.test(issuer)) {
    throw new UampError('invalid_request', `--issuer "${issuer}" is not the URL of a server or an agent: write it like https://example.com`)
  }
  const found: Found = file === undefined ? { signatures: [], response: undefined } : signedIn(await contents(file))
  const signatures = flags.signature === undefined ? found.signatures : [flags.signature.trim()]
  const response = flags.response === undefined ? found.response : await contents(flags.response)
  const request = flags.request === undefined ? undefined : messagesIn(await contents(flags.request), flags.request)
  const jwks = flags.jwks === undefined ? undefined : await keysIn(flags.jwks)
  const check = (signature: string): Promise<Verified> => verifySigned({ signature, response, request }, { jwks, issuer })
  const best = bestOf(await Promise.allSettled(signatures.map(check)))
  process.stdout.write(flags.json ? `${JSON.stringify(best)}\n` : page(best, { request, response, issuer }))
  return best.valid ? 0 : 1
}

/** Where an agent elsewhere has signed, too, its signature is of the request that it got, and its keys may be out of reach. */
function bestOf(results: readonly PromiseSettledResult<Verified>[]): Verified {
  const checked = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const best = checked.find(({ valid }) => valid) ?? checked[0]
  if (best) return best
  const failed = results.find((result) => result.status === 'rejected')
  throw failed?.reason instanceof Error ? failed.reason : new UampError('invalid_request', 'There is no signature to check')
}

async function contents(file: string): Promise<string> {
  if (file === '-') return text(process.stdin)
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new UampError('invalid_request', `${file} cannot be read: ${whyUnreadable(cause)}`, { cause })
  }
}

/** The messages of a request: the list itself, or the body that has it. */
function messagesIn(body: string, file: string): unknown {
  const value = parsed(body, `${file} is not JSON: it must hold the messages, or the body of the request`)
  const messages = isRecord(value) ? (value['messages'] ?? value['input']) : value
  if (messages === undefined) throw new UampError('invalid_request', `${file} has neither "messages" nor "input"`)
  return messages
}

async function keysIn(place: string): Promise<unknown> {
  if (/^https?:\/\//.test(place)) return keysAt(place)
  return parsed(await contents(place), `${place} is not JSON: it must hold a JWK set`)
}

function parsed(text: string, otherwise: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UampError('invalid_request', otherwise)
  }
}

function page(
  { valid, problems, expired, claims, compared }: Verified,
  given: Readonly<Record<'request' | 'response' | 'issuer', unknown>>,
): string {
  const paint = painter(process.stdout)
  const part = (name: 'request' | 'response', hint: string): string => {
    if (!compared.includes(name)) return `the ${name} was not compared: ${hint}`
    return problems.some((problem) => problem.startsWith(`The ${name} `))
      ? `the ${name} is another one`
      : `the ${name} is the one that was signed`
  }
  const rows = [
    [valid ? 'signed by' : 'names', claims['iss']],
    ...(valid && given.issuer === undefined ? [['', 'whoever that is: give --issuer to say who must have signed']] : []),
    ['for', claims['aud'] ?? 'anybody'],
    ['at', time(claims['iat'])],
    ['response', claims['response_id']],
    ['', part('response', given.response === undefined ? 'give --response' : '')],
    ['', part('request', 'give --request')],
    ...(valid && expired ? [['expired', `${time(claims['exp'])}: it was fresh until then, and is still evidence of what was said`]] : []),
  ]
  const lines = rows.filter(([, value]) => value !== undefined).map(([name, value]) => `  ${String(name).padEnd(10)} ${onOneLine(value)}\n`)
  const wrong = (): string => `The signature is wrong: ${onOneLine(problems.join('. '))}.`
  return `${valid ? paint('green', 'The signature is right.') : paint('red', wrong())}\n${lines.join('')}`
}

function time(seconds: unknown): string {
  const date = new Date(typeof seconds === 'number' ? seconds * 1000 : NaN)
  return Number.isNaN(date.getTime()) ? 'an unknown time' : date.toISOString()
}

/** Claims are what anybody wrote: they must not look like a line of ours. */
function onOneLine(value: unknown): string {
  return harmless(typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/\s+/g, ' ')
}
