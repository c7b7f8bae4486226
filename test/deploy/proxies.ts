import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Proxy {
  readonly url: string
  stop(): Promise<void>
}

const recipe = (name: string): string => readFileSync(fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url)), 'utf8')
const PATH = `${process.env['PATH']}:/usr/sbin:/usr/local/sbin`

export const has = (command: string): boolean => spawnSync('sh', ['-c', `command -v ${command}`], { env: { PATH } }).status === 0

/** nginx with the recipe as it is, but for the port, the certificate, and where the server is. */
export async function startNginx(upstream: string): Promise<Proxy> {
  const port = await freePort()
  const server = recipe('nginx.conf')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_certificate.*$/gm, '')
    .replace('127.0.0.1:8787', upstream)
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${kind};`).join(' ')
  const config = `daemon off; master_process off; pid nginx.pid; error_log stderr warn; events {}\nhttp { access_log off; ${folders}\n${server}}`
  return run(port, (folder) => {
    writeFileSync(join(folder, 'nginx.conf'), config)
    return ['nginx', '-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  })
}

/** Caddy with the recipe, without a certificate. */
export async function startCaddy(upstream: string): Promise<Proxy> {
  const port = await freePort()
  return run(port, (folder) => {
    writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n\tauto_https off\n}\n${recipe('Caddyfile')}`)
    const env = [`SITE=http://:${port}`, `AGENTS=${upstream}`, `HOME=${folder}`, `XDG_CONFIG_HOME=${folder}`, `XDG_DATA_HOME=${folder}`]
    return ['env', ...env, 'caddy', 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
  })
}

async function run(port: number, prepare: (folder: string) => readonly string[]): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-proxy-'))
  const [command = '', ...args] = prepare(folder)
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, PATH } })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const url = `http://127.0.0.1:${port}`
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await gone
    rmSync(folder, { recursive: true })
  }
  while (
    !(await fetch(`${url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 20))
    else throw new Error(`${command} ended with ${child.exitCode}:\n${output}`)
  }
  return { url, stop }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
