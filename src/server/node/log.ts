import { destination, pino, stdSerializers } from 'pino'
import type { DestinationStream } from 'pino'
import type { Log } from '../../core/ports/transport.ts'

/** What must not be read in a log, whether it stands alone or among headers. */
const SECRETS = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'sec-websocket-protocol',
  'payment-signature',
  'x-payment',
  'x-payment-token',
  'token',
  'tokens',
  'payment_token',
  'secret',
]

export interface LogOptions {
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  /** Default: standard error, so that what a program prints and what it logs stay apart. */
  readonly to?: DestinationStream
}

/** Structured lines by pino, without secrets. */
export function pinoLog({ level = 'info', to = destination({ dest: 2, sync: true }) }: LogOptions = {}): Log {
  const logger = pino(
    {
      level,
      base: null,
      redact: SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
      serializers: { error: stdSerializers.err },
    },
    to,
  )
  return (severity, message, fields) => {
    if (fields === undefined) logger[severity](message)
    else logger[severity](fields, message)
  }
}
