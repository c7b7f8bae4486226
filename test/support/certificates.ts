import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A certificate and its key, as files. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

export interface Asked {
  /** Its subject alternative names. Default: this machine. */
  readonly names?: readonly string[]
  /** Default: 2. A negative number has ended. */
  readonly days?: number
}

/** An authority that nobody knows, made for one test file and gone with it. */
export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), 'uamp-tls-'))
  readonly cert = join(this.folder, 'ca.pem')
  readonly #key = join(this.folder, 'ca.key')
  #made = 0

  constructor() {
    openssl(['req', '-x509', ...FRESH_KEY, '-keyout', this.#key, '-out', this.cert, '-days', '2', '-subj', '/CN=Test CA'])
    afterAll(() => rmSync(this.folder, { recursive: true, force: true }))
  }

  /** Issues a certificate for a new key. */
  issue({ names = ['DNS:localhost', 'IP:127.0.0.1', 'IP:::1'], days = 2 }: Asked = {}): Pair {
    const base = join(this.folder, `made-${++this.#made}`)
    const [key, request, cert, names_] = [`${base}.key`, `${base}.csr`, `${base}.pem`, `${base}.ext`]
    writeFileSync(names_, `subjectAltName=${names.join(',')}\n`)
    openssl(['req', ...FRESH_KEY, '-keyout', key, '-out', request, '-subj', '/CN=test'])
    openssl(['x509', '-req', '-in', request, '-CA', this.cert, '-CAkey', this.#key, '-CAcreateserial', '-out', cert, '-days', String(days), '-extfile', names_]) // prettier-ignore
    return { cert, key }
  }

  get pem(): Buffer {
    return readFileSync(this.cert)
  }
}

const FRESH_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}
