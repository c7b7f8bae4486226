import { destination, pino, stdSerializers } from 'pino'
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

/** JSON lines by pino, without secrets. */
export function pinoLog({ level = 'info', to = destination({ dest: 2, sync: true }) }: LogOptions = {}): Logger {
  const logger = pino(
    {
      level,
      base: null,
      serializers: { error: stdSerializers.err },
    },
    to,
  )
  return redactedLog((severity, message, fields) => {
    if (fields === undefined) logger[severity](message)
    else logger[severity](fields, message)
  }, BY_NAME)
}
