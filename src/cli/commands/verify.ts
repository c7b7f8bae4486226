import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { verifySigned, type Verified } from '../../client/verify.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { signedIn, type Found } from '../verify/signed-in.ts'
import { harmless, painter } from '../print.ts'

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
  const found: Found = file === undefined ? { signatures: [], response: undefined } : signedIn(await contents(file))
  const signatures = flags.signature === undefined ? found.signatures : [flags.signature.trim()]
  const response = flags.response === undefined ? found.response : await contents(flags.response)
  const request = flags.request === undefined ? undefined : messagesIn(await contents(flags.request), flags.request)
  const jwks = flags.jwks === undefined ? undefined : await keysAt(flags.jwks)
  const results: Verified[] = []
  for (const signature of signatures) results.push(await verifySigned({ signature, response, request }, { jwks, issuer: flags.issuer }))
  // Where an agent elsewhere has signed, too, its signature is of the request that it got.
  const best = results.find(({ valid }) => valid) ?? results[0]
  if (!best) throw new UampError('invalid_request', 'There is no signature to check')
  process.stdout.write(flags.json ? `${JSON.stringify(best)}\n` : page(best, { request, response }))
  return best.valid ? 0 : 1
}

function contents(file: string): Promise<string> {
  return file === '-' ? text(process.stdin) : readFile(file, 'utf8')
}

/** The messages of a request: the list itself, or the body that has it. */
function messagesIn(body: string, file: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    throw new UampError('invalid_request', `${file} is not JSON: it must hold the messages, or the body of the request`)
  }
  return isRecord(value) ? (value['messages'] ?? value['input']) : value
}

async function keysAt(place: string): Promise<unknown> {
  if (!/^https?:\/\//.test(place)) return JSON.parse(await readFile(place, 'utf8'))
  const answer = await fetch(place, { redirect: 'error', signal: AbortSignal.timeout(10_000) })
  if (!answer.ok) throw new UampError('not_found', `${place} answered ${answer.status}`)
  return answer.json()
}

function page({ valid, problems, expired, claims, compared }: Verified, given: Readonly<Record<'request' | 'response', unknown>>): string {
  const paint = painter(process.stdout)
  const time = (seconds: unknown): string => (typeof seconds === 'number' ? new Date(seconds * 1000).toISOString() : 'an unknown time')
  const part = (name: 'request' | 'response', hint: string): string => {
    if (!compared.includes(name)) return `the ${name} was not compared: ${hint}`
    return problems.some((problem) => problem.startsWith(`The ${name} `))
      ? `the ${name} is another one`
      : `the ${name} is the one that was signed`
  }
  const rows = [
    ['signed by', claims['iss']],
    ['for', claims['aud'] ?? 'anybody'],
    ['at', time(claims['iat'])],
    ['response', claims['response_id']],
    ['', part('response', given.response === undefined ? 'give --response' : '')],
    ['', part('request', 'give --request')],
    ...(expired ? [['expired', `${time(claims['exp'])}: it was fresh until then, and is still evidence of what was said`]] : []),
  ]
  const lines = rows.filter(([, value]) => value !== undefined).map(([name, value]) => `  ${String(name).padEnd(10)} ${String(value)}\n`)
  const verdict = valid ? paint('green', 'The signature is right.') : paint('red', `The signature is wrong: ${problems.join('. ')}.`)
  return `${verdict}\n${harmless(lines.join(''))}`
}
