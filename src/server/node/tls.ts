/** Certificates of the server, and those that it asks its clients for. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls'
import { Bucket } from '../../core/basics/bucket.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'

/** Files in PEM form. They are read again when they change. */
export interface TlsFiles {
  /** The certificate, and those between it and the one that clients know. */
  readonly cert: string
  /** Its private key, without a passphrase. */
  readonly key: string
  /** The certificates that must have issued those of clients. Clients may show one, and need not. */
  readonly clientCa?: string
}

/** What the files hold. */
export interface TlsPair extends SecureContextOptions {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca: Buffer | undefined
  readonly minVersion: 'TLSv1.3'
  /** What the certificate is for. */
  readonly names: string
  /** When the certificate ends. */
  readonly until: Date
}

/** How long before its end a certificate should have been renewed: most are renewed a month before. */
const RENEW_DAYS = 14
const DAY_MS = 86_400_000

type Option = keyof TlsFiles

/** Rejects with what is wrong, and what to do, if a server could not use them. */
export async function readTls(files: TlsFiles): Promise<TlsPair> {
  const [cert, key, ca] = await Promise.all([
    textOf('cert', files.cert),
    textOf('key', files.key),
    files.clientCa === undefined ? undefined : textOf('clientCa', files.clientCa),
  ])
  const certificate = parsed('cert', files.cert, () => new X509Certificate(cert))
  const privateKey = parsed('key', files.key, () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey))
    throw unusable(
      `${files.key} (tls.key) is not the key of the certificate in ${files.cert} (tls.cert): give the two that belong together`,
    )
  if (files.clientCa !== undefined && ca) parsed('clientCa', files.clientCa, () => new X509Certificate(ca))
  const names = certificate.subjectAltName ?? certificate.subject
  const pair: TlsPair = { cert, key, ca, minVersion: 'TLSv1.3', names, until: new Date(certificate.validTo) }
  // Finds what the checks do not, such as a chain that is cut off in the middle.
  parsed('cert', files.cert, () => createSecureContext(pair))
  return pair
}

/** What to tell about the end of a certificate; undefined if it is far away. */
export function endingSoon({ until }: TlsPair, now: number): string | undefined {
  const days = Math.floor((until.getTime() - now) / DAY_MS)
  if (days > RENEW_DAYS) return undefined
  return days < 0 ? `The certificate has ended on ${until.toISOString()}` : `The certificate ends on ${until.toISOString()}`
}

async function textOf(option: Option, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw unusable(`${path} (tls.${option}) cannot be read (${code}): name a PEM file that this process may read`, cause)
  }
}

const FORMS: Readonly<Record<Option, string>> = {
  cert: 'no certificate in PEM form: it must begin with -----BEGIN CERTIFICATE-----',
  key: 'no private key in PEM form without a passphrase: it must begin with -----BEGIN PRIVATE KEY-----',
  clientCa: 'no certificate in PEM form: it must begin with -----BEGIN CERTIFICATE-----',
}

function parsed<T>(option: Option, path: string, parse: () => T): T {
  try {
    return parse()
  } catch (cause) {
    throw unusable(`${path} (tls.${option}) holds ${FORMS[option]}`, cause)
  }
}

function unusable(message: string, cause?: unknown): UampError {
  return new UampError('invalid_request', message, { cause })
}

/** How often the files are looked at. */
const LOOK_MS = 5_000

export interface ReloadOptions {
  readonly pair: TlsPair
  /** New connections get it. */
  readonly use: (pair: TlsPair) => void
  readonly log: Logger
  readonly now: () => number
  /** Default: 5,000. */
  readonly lookMs?: number | undefined
}

/**
 * Reads the files again and again, and not only when the system tells of a change: certificates are often replaced by renaming, or by
 * turning a link to a folder, which no watcher sees everywhere. They are small.
 */
export class TlsReload {
  readonly #files: TlsFiles
  readonly #options: ReloadOptions
  readonly #timer: NodeJS.Timeout
  #pair: TlsPair
  #busy = false
  /** What was wrong when they were last read. */
  #wrong: string | undefined
  #told: string | undefined

  constructor(files: TlsFiles, options: ReloadOptions) {
    this.#files = files
    this.#options = options
    this.#pair = options.pair
    this.#warn()
    this.#timer = setInterval(() => void this.#look(), options.lookMs ?? LOOK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    try {
      const pair = await readTls(this.#files)
      this.#wrong = this.#told = undefined
      if (isSame(pair, this.#pair)) return
      this.#options.use(pair)
      this.#pair = pair
      this.#options.log('info', 'The certificate was replaced', { until: pair.until.toISOString() })
      this.#warn()
    } catch (thrown) {
      this.#fail(UampError.from(thrown).message)
    } finally {
      this.#busy = false
    }
  }

  /** Tells it when it is still so at the next look: key and certificate are replaced one after the other. */
  #fail(message: string): void {
    if (this.#wrong === message && this.#told !== message) {
      this.#told = message
      this.#options.log('error', `The certificate stays as it was: ${message}`)
    }
    this.#wrong = message
  }

  #warn(): void {
    const { now, log } = this.#options
    const message = endingSoon(this.#pair, now())
    if (message !== undefined) log('warn', `${message}: renew it`)
  }
}

function isSame(one: TlsPair, other: TlsPair): boolean {
  return one.cert.equals(other.cert) && one.key.equals(other.key) && (one.ca?.equals(other.ca ?? Buffer.alloc(0)) ?? other.ca === undefined)
}

export interface ClientCertificatesOptions {
  readonly log: Logger
  readonly monotonic: () => number
}

/**
 * Refuses clients whose certificate does not verify: who shows one means to be known by it, and would otherwise find out by a 401 that
 * does not tell why. TLS 1.3 lets a client go on before its certificate has been looked at, so it sees its connection end.
 */
export class ClientCertificates {
  readonly #options: ClientCertificatesOptions
  /** Refusals that are logged, so that an attacker cannot fill the log. */
  readonly #refusals: Bucket

  constructor(options: ClientCertificatesOptions) {
    this.#options = options
    this.#refusals = new Bucket({ burst: 20, perSecond: 0.5, monotonic: options.monotonic })
  }

  /** False if the connection was ended. */
  admit(socket: TLSSocket): boolean {
    if (socket.authorized || socket.getPeerX509Certificate() === undefined) return true
    if (this.#refusals.take(1)) {
      const because = String(socket.authorizationError)
      this.#options.log('info', "A client's certificate was refused", { address: socket.remoteAddress, because })
    }
    socket.destroy()
    return false
  }
}
