import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { DestinationStream } from 'pino'
import type { Logger } from '../../core/ports/transport.ts'
import { redactedLog } from '../../core/secrets/redaction.ts'
import { terminalLine } from './log-line.ts'

/** On its own, the log finds secrets only by the names of their fields. A server adds its own redaction. */
const BY_NAME = { text: (text: string) => text }

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
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
}

/** Lines without secrets: by pino, or as text for a terminal. */
export function serverLog(options: LogOptions = {}): ServerLog {
  let { level = 'info', format = process.stderr.isTTY && !options.to ? 'text' : 'json' } = options
  let pino: ReturnType<typeof loaded> | undefined
  const { to = new Later() } = options
  const colours = process.stderr.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
  const log = redactedLog((severity, message, fields) => {
    if (format === 'text') return to.write(terminalLine({ severity, message, fields, at: new Date() }, colours))
    // Most starts log nothing, so the first line loads pino.
    pino ??= loaded(to)
    if (fields === undefined) pino[severity](message)
    else pino[severity](fields, message)
    if (severity !== 'info' && to instanceof Later) to.flush()
  }, BY_NAME)
  return {
    log: (severity, message, fields) => {
      if (LOG_LEVELS.indexOf(severity) >= LOG_LEVELS.indexOf(level)) log(severity, message, fields)
    },
    set(changed) {
      level = changed.level ?? level
      format = changed.format ?? format
    },
  }
}

export function pinoLog(options: LogOptions = {}): Logger {
  return serverLog(options).log
}

function loaded(to: DestinationStream) {
  // Not `import()`: a line before the end of the process would come too late.
  const { pino, stdSerializers } = createRequire(import.meta.url)('pino') as typeof import('pino')
  return pino({ level: 'debug', base: null, serializers: { error: stdSerializers.err } }, to)
}

/** How long a line may wait for others, and how many characters. */
const WAIT_MS = 20
const WAITING = 64 * 1024
const STDERR = 2

/** Writes the lines of busy moments together: a write for each request would cost more than to make its line. */
class Later implements DestinationStream {
  #waiting = ''
  #timer: NodeJS.Timeout | undefined
  readonly #flush = (): void => this.flush()

  write(line: string): void {
    if (this.#waiting === '') {
      // Not `unref`: it is soon over, and the line must come.
      this.#timer = setTimeout(this.#flush, WAIT_MS)
      process.once('exit', this.#flush)
    }
    this.#waiting += line
    if (this.#waiting.length >= WAITING) this.flush()
  }

  flush(): void {
    const text = this.#waiting
    this.#waiting = ''
    clearTimeout(this.#timer)
    process.off('exit', this.#flush)
    if (text !== '') writeAll(text)
  }
}

/** A reader that is slow makes the program wait, and one that has gone is no reason to fail. */
function writeAll(text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0, tries = 0; at < bytes.length && tries < 1_000;) {
    try {
      at += writeSync(STDERR, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      tries++
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
}
