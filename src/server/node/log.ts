import { createRequire } from 'node:module'
import type { DestinationStream } from 'pino'
import type { Logger } from '../../core/ports/transport.ts'
import { redactedLog } from '../../core/secrets/redaction.ts'
import { showsColors, terminalLine } from './log-line.ts'
import { StandardError } from './standard-error.ts'

/** On its own, the log finds secrets only by the names of their fields. A server adds its own redaction. */
const BY_NAME = { text: (text: string) => text }

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export type LogFormat = 'text' | 'json'

export interface LogOptions {
  readonly level?: LogLevel
  /** Default: text for people if standard error is a terminal, else JSON for programs. */
  readonly format?: LogFormat
  /** Default: standard error, so that a program's output and its log stay apart. */
  readonly to?: DestinationStream
}

/** A log whose settings may change once the configuration is read. */
export interface ServerLog {
  readonly log: Logger
  set(options: Pick<LogOptions, 'level' | 'format'>): void
  /** True if lines of this level are written. */
  writes(level: Exclude<LogLevel, 'silent'>): boolean
}

type Write = (...line: readonly [fields: Readonly<Record<string, unknown>>, message: string]) => void
type Writers = Readonly<Record<'debug' | 'info' | 'warn' | 'error', Write>>

/** Lines without secrets: by pino, or as text for a terminal. */
export function serverLog(options: LogOptions = {}): ServerLog {
  let { level = 'info', format = process.stderr.isTTY && !options.to ? 'text' : 'json' } = options
  let json: Writers | undefined
  const { to = new StandardError() } = options
  const colours = !options.to && showsColors(process.stderr)
  const writes = (severity: LogLevel): boolean => LOG_LEVELS.indexOf(severity) >= LOG_LEVELS.indexOf(level)
  const log = redactedLog((severity, message, fields) => {
    if (format === 'text') to.write(terminalLine({ severity, message, fields, at: new Date() }, colours))
    // Most starts log nothing, so the first line loads pino.
    else (json ??= loaded(to))[severity](fields ?? {}, message)
    if (severity !== 'info' && to instanceof StandardError) to.flush()
  }, BY_NAME)
  return {
    log: (severity, message, fields) => {
      if (writes(severity)) log(severity, message, fields)
    },
    set(changed) {
      level = changed.level ?? level
      format = changed.format ?? format
    },
    writes,
  }
}

export function pinoLog(options: LogOptions = {}): Logger {
  return serverLog(options).log
}

function loaded(to: DestinationStream): Writers {
  // Not `import()`: a line before the end of the process would come too late.
  const load = createRequire(import.meta.url)
  try {
    load.resolve('pino')
  } catch {
    // Somebody made one file of a server, and left the packages behind.
    return plain(to)
  }
  const { pino, stdSerializers } = load('pino') as typeof import('pino')
  // pino writes what an error inherits, and a DOMException inherits a constant for each code that it could have.
  const error = (thrown: Error): object =>
    thrown instanceof DOMException ? { type: thrown.name, message: thrown.message, stack: thrown.stack } : stdSerializers.err(thrown)
  return pino({ level: 'debug', base: null, serializers: { error } }, to)
}

/** The same lines, slower. */
function plain(to: { write(text: string): unknown }): Writers {
  const told = (_: string, value: unknown): unknown => (value instanceof Error ? { message: value.message, stack: value.stack } : value)
  const at = (level: number): Write => {
    return (fields, msg) => void to.write(`${JSON.stringify({ level, time: Date.now(), ...fields, msg }, told)}\n`)
  }
  return { debug: at(20), info: at(30), warn: at(40), error: at(50) }
}
