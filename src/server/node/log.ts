import { createRequire } from 'node:module'
import type { DestinationStream } from 'pino'
import type { Logger } from '../../core/ports/transport.ts'
import { redactedLog } from '../../core/secrets/redaction.ts'

/** On its own, the log finds secrets only by the names of their fields. A server adds its own redaction. */
const BY_NAME = { text: (text: string) => text }

export interface LogOptions {
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  /** Default: standard error, so that a program's output and its log stay apart. */
  readonly to?: DestinationStream
}

type Write = (...line: readonly [fields: Readonly<Record<string, unknown>>, message: string]) => void
type Writers = Readonly<Record<'debug' | 'info' | 'warn' | 'error', Write>>

/** JSON lines by pino, without secrets. Most starts log nothing, so the first line loads pino. */
export function pinoLog(options: LogOptions = {}): Logger {
  let logger: Writers | undefined
  return redactedLog((severity, message, fields) => {
    logger ??= loaded(options)
    logger[severity](fields ?? {}, message)
  }, BY_NAME)
}

function loaded({ level = 'info', to }: LogOptions): Writers {
  // Not `import()`: a line before the end of the process would come too late.
  const load = createRequire(import.meta.url)
  try {
    load.resolve('pino')
  } catch {
    // Somebody made one file of a server, and left the packages behind.
    return plain(to)
  }
  const { destination, pino, stdSerializers } = load('pino') as typeof import('pino')
  // pino writes what an error inherits, and a DOMException inherits a constant for each code that it could have.
  const error = (thrown: Error): object =>
    thrown instanceof DOMException ? { type: thrown.name, message: thrown.message, stack: thrown.stack } : stdSerializers.err(thrown)
  return pino({ level, base: null, serializers: { error } }, to ?? destination({ dest: 2, sync: true }))
}

/** The same lines, slower. */
function plain(to: { write(text: string): unknown } = process.stderr): Writers {
  const told = (_: string, value: unknown): unknown => (value instanceof Error ? { message: value.message, stack: value.stack } : value)
  const at = (level: number): Write => {
    return (fields, msg) => void to.write(`${JSON.stringify({ level, time: Date.now(), ...fields, msg }, told)}\n`)
  }
  return { debug: () => undefined, info: at(30), warn: at(40), error: at(50) }
}
