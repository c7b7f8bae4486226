import { inspect, styleText } from 'node:util'
import type { Logger } from '../../core/ports/transport.ts'

/** True of a stream that shows colours. Node checks the terminal, and variables such as NO_COLOR, FORCE_COLOR, TERM and CI. */
export function showsColors(stream: NodeJS.WritableStream): boolean {
  return styleText('bold', 'x', { stream }) !== 'x'
}

export interface Line {
  readonly severity: Parameters<Logger>[0]
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | undefined
  readonly at: Date
}

const RESET = '\x1b[0m'
const DIM = '\x1b[2m'
const COLOURS = { debug: '\x1b[2m', info: '\x1b[32m', warn: '\x1b[33m', error: '\x1b[31m' } as const

/** One line for people: `12:04:31 info  POST /v1/chat/completions 200 12ms  agent=demo request_id=…`. A stack follows on lines of its own. */
export function terminalLine({ severity, message, fields = {}, at }: Line, colours: boolean): string {
  const paint = (colour: string, text: string): string => (colours && text !== '' ? `${colour}${text}${RESET}` : text)
  const { error, ...rest } = fields
  const { text, others } = isRequest(message, rest) ? request(rest, paint) : { text: plain(message), others: rest }
  const told = Object.entries(others).map(([name, value]) => `${name}=${valueOf(value)}`)
  const time = at.toTimeString().slice(0, 8)
  const head = `${paint(DIM, time)} ${paint(COLOURS[severity], severity.padEnd(5))} ${text}`
  const line = told.length === 0 ? head : `${head}  ${paint(DIM, told.join(' '))}`
  return error === undefined ? `${line}\n` : `${line}\n${indented(error)}\n`
}

type Fields = Readonly<Record<string, unknown>>

function isRequest(message: string, { method, path, status }: Fields): boolean {
  return message === 'Request' && method !== undefined && path !== undefined && status !== undefined
}

function request({ method, path, status, ms, ...others }: Fields, paint: (colour: string, text: string) => string) {
  const colour = Number(status) >= 500 ? COLOURS.error : Number(status) >= 400 ? COLOURS.warn : COLOURS.info
  const text = `${plain(String(method))} ${plain(String(path))} ${paint(colour, String(status))} ${String(ms)}ms`
  return { text, others }
}

function valueOf(value: unknown): string {
  if (typeof value === 'string') return /^[\w./:@+-]+$/.test(value) ? value : plain(JSON.stringify(value))
  return plain(inspect(value, { breakLength: Infinity, depth: 3, maxStringLength: 500 }))
}

function indented(error: unknown): string {
  return inspect(error).split('\n').map((line) => `    ${plain(line)}`).join('\n') // prettier-ignore
}

/** A terminal obeys control characters, and others wrote some of the text. Those that change its direction can disguise it. */
function plain(text: string): string {
  return text.replace(/\p{Cc}|[\u202A-\u202E\u2066-\u2069]/gu, (char) => {
    const code = char.charCodeAt(0).toString(16)
    return code.length > 2 ? `\\u${code}` : `\\x${code.padStart(2, '0')}`
  })
}
