import { statSync } from 'node:fs'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { createServer } from 'node:net'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { nodeMistake } from '../node-version.ts'
import { note, ok, wrong, type Check } from './check.ts'

const PROBE_MS = 1_000
/** Certificates and signed requests allow for a few minutes. */
const SKEW_MS = 5 * 60_000

export function checkNode(version = process.version): Check {
  const mistake = nodeMistake(version)
  const [found = '', fix = ''] = mistake?.split(/: (.*)/s) ?? []
  return mistake === undefined ? ok('node', version) : wrong('node', found, fix)
}

interface Place {
  readonly port: number
  readonly host: string
  /** True if a server would speak HTTPS there. */
  readonly secure: boolean
}

/** Takes the port for a moment. */
export async function checkPort({ port, host, secure }: Place): Promise<Check> {
  if (port === 0) return ok('port', 'any free port')
  const code = await new Promise<string | undefined>((resolve) => {
    const server = createServer().once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ port, host }, () => server.close(() => resolve(undefined)))
  })
  if (code === undefined) return ok('port', `${port} is free on ${host}`)
  if (code === 'EADDRINUSE') {
    if (await isOurs({ port, host, secure })) return ok('port', `${port} is used by a server of uamp, which answers`)
    return wrong('port', `${port} is in use by another program`, 'stop that program, or choose another port with --port')
  }
  if (code === 'EACCES') return wrong('port', `${port} needs more rights than this user has`, 'choose a port above 1023 with --port')
  return wrong('port', `this machine cannot listen on ${host} (${code})`, 'choose 127.0.0.1, or 0.0.0.0 for all addresses, with --host')
}

async function isOurs({ port, host, secure }: Place): Promise<boolean> {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  // It is asked for nothing but its health, so whose certificate it has does not matter here.
  const options = { port, host: name, path: '/health', signal: AbortSignal.timeout(PROBE_MS), rejectUnauthorized: false }
  try {
    const [answer] = (await once(secure ? requestHttps(options).end() : request(options).end(), 'response')) as [IncomingMessage]
    return answer.statusCode === 200 && ((await json(answer)) as { status?: unknown }).status === 'ok'
  } catch {
    return false
  }
}

/** Compares the clock with those of servers that answered, else with the age of this very file. */
export function checkClock(times: readonly number[], now = Date.now()): Check {
  const fix = 'set the clock, or let the system do it: `timedatectl set-ntp true`'
  const installed = statSync(fileURLToPath(import.meta.url)).mtimeMs
  if (now < installed - SKEW_MS) return wrong('clock', `it is ${shown(now)}, but uamp was installed at ${shown(installed)}`, fix)
  const [first] = times
  if (first === undefined) return ok('clock', shown(now))
  const skew = Math.min(...times.map((time) => Math.abs(time - now)))
  return skew > SKEW_MS ? note('clock', `${shown(now)} here, ${shown(first)} elsewhere`, fix) : ok('clock', `${shown(now)}, as elsewhere`)
}

function shown(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
