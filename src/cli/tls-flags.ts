import type { Command } from 'commander'
import type { TlsFiles } from '../server/node/tls.ts'
import { UampError } from '../protocol/errors.ts'
import { present } from '../wire/fields.ts'

export interface TlsFlags {
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsClientCa?: string
}

export function withTls(command: Command): Command {
  return command
    .option('--tls-cert <file>', 'speak HTTPS, with the certificate in this PEM file, which is read again when it changes')
    .option('--tls-key <file>', 'the key of that certificate')
    .option('--tls-client-ca <file>', 'ask clients for a certificate, which one in this PEM file must have issued')
}

/** The files of the command line, and those of the config that it does not name. */
export function tlsFrom({ tlsCert, tlsKey, tlsClientCa }: TlsFlags, settings: TlsFiles | undefined): TlsFiles | undefined {
  const { cert, key, clientCa } = { ...settings, ...present({ cert: tlsCert, key: tlsKey, clientCa: tlsClientCa }) } as Partial<TlsFiles>
  if (cert !== undefined && key !== undefined) return { cert, key, ...present({ clientCa }) }
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined
  const missing = cert === undefined ? '--tls-cert, the file with the certificate' : '--tls-key, the file with the key of the certificate'
  throw new UampError('invalid_request', `TLS needs a certificate and its key: add ${missing}`)
}
