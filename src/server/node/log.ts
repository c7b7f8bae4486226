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

/** JSON lines by pino, without secrets. Most starts log nothing, so the first line loads pino. */
export function pinoLog(options: LogOptions = {}): Logger {
  let logger: ReturnType<typeof loaded> | undefined
  return redactedLog((severity, message, fields) => {
    logger ??= loaded(options)
    if (fields === undefined) logger[severity](message)
    else logger[severity](fields, message)
  }, BY_NAME)
}

function loaded({ level = 'info', to }: LogOptions) {
  // Not `import()`: a line before the end of the process would come too late.
  const { destination, pino, stdSerializers } = createRequire(import.meta.url)('pino') as typeof import('pino')
  // pino writes what an error inherits, and a DOMException inherits a constant for each code that it could have.
  const error = (thrown: Error): object =>
    thrown instanceof DOMException ? { type: thrown.name, message: thrown.message, stack: thrown.stack } : stdSerializers.err(thrown)
  return pino({ level, base: null, serializers: { error } }, to ?? destination({ dest: 2, sync: true }))
}
