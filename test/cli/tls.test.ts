import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { Authority } from '../support/certificates.ts'
import { verifies } from '../support/verifies.ts'
import { finished, project, serving } from './run.ts'

const authority = new Authority()
const run = promisify(execFile)

/** A project with a certificate in its folder. */
async function withPair(files: Record<string, string> = {}): Promise<string> {
  const { cert, key } = authority.issue()
  return project({ 'cert.pem': readFileSync(cert, 'utf8'), 'key.pem': readFileSync(key, 'utf8'), ...files })
}

const FLAGS = ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem']

test('a server with a certificate prints https URLs, and its line to try works', async () => {
  const cwd = await withPair()
  const { cli, url } = await serving(['--data', 'memory', ...FLAGS], { cwd })
  expect(url).toMatch(/^https:\/\/localhost:\d+$/)
  expect(cli.stdout).toContain(`${url.replace('https', 'wss')}/uamp`)
  const line = /curl -N .*/.exec(cli.stdout)?.[0] ?? ''
  expect(line).toContain(`curl -N ${url}/events`)
  const { stdout } = await run('sh', ['-c', line.replace('curl', `curl -sS --cacert ${authority.cert}`)])
  expect(stdout).toContain('"type":"response.done"')
})

test('uamp chat reaches a server with a private authority if Node knows it', async () => {
  const { url } = await serving(['--data', 'memory', ...FLAGS], { cwd: await withPair() })
  const known = await finished(['chat', '-q', url, 'hello'], { env: { NODE_EXTRA_CA_CERTS: authority.cert } })
  expect(known).toMatchObject({ code: 0, stdout: 'You said: hello\n' })
  const unknown = await finished(['chat', '-q', url, 'hello'])
  expect(unknown.code).toBe(4)
  expect(unknown.stderr).toContain('certificate')
})

test('a config names the files from its own folder, and flags come before it', async () => {
  const cwd = await withPair({ 'uamp.config.yaml': 'agents: [./agent.js]\ntls: { cert: cert.pem, key: key.pem }\n', 'agent.js': AGENT })
  expect((await serving(['--config', `${cwd}/uamp.config.yaml`, '--data', 'memory'])).url).toMatch(/^https:/)
  const { code, stderr } = await finished(['serve', '--port', '0', '--tls-key', 'none.pem'], { cwd, env: { UAMP_DATA: 'memory' } })
  expect([code, stderr]).toEqual([1, expect.stringMatching(/none.pem \(tls.key\) cannot be read \(ENOENT\): .*\(--tls-key\)/)])
})

const AGENT = `import { defineAgent } from 'uamp'\nexport default defineAgent('one', async function* () {})`

verifies('tls.mistakes', 'half of the options, or files that do not fit, are told with what to do', async () => {
  const cwd = await withPair()
  const why = async (...args: string[]) => (await finished(['serve', '--port', '0', ...args], { cwd, env: { UAMP_DATA: 'memory' } })).stderr
  expect(await why('--tls-cert', 'cert.pem')).toContain('TLS needs a certificate and its key: add --tls-key')
  expect(await why('--tls-client-ca', 'cert.pem')).toContain('TLS needs a certificate and its key: add --tls-cert')
  expect(await why('--tls-cert', 'cert.pem', '--tls-key', 'cert.pem')).toMatch(
    /\(tls.key\) holds no private key in PEM form.*\(--tls-key\)/,
  )
  writeFileSync(`${cwd}/key.pem`, readFileSync(authority.issue().key))
  expect(await why(...FLAGS)).toMatch(/key.pem \(tls.key\) is not the key of the certificate in cert.pem/)
})

verifies('tls.h2c', '--insecure-dev is for this machine alone', async () => {
  const { url } = await serving(['--data', 'memory', '--insecure-dev'])
  const { stdout } = await run('curl', ['-sS', '--http2-prior-knowledge', `${url}/health`])
  expect(stdout).toBe('{"status":"ok"}')
  const { code, stderr } = await finished(['serve', '--port', '0', '--insecure-dev', '--host', '0.0.0.0', '--allow-anonymous'])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/0.0.0.0 can be reached from other machines.*\(--insecure-dev\)/)])
})

test('the doctor looks at the certificate', async () => {
  const cwd = await withPair()
  const doctor = async (...args: string[]) => {
    const { stdout } = await finished(['doctor', '--json', '--port', '0', ...args], { cwd, env: { UAMP_DATA: 'memory' } })
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: { name: string; state: string; found: string }[] }
    return { ok, tls: checks.find(({ name }) => name === 'tls') }
  }
  expect(await doctor()).toEqual({ ok: true, tls: undefined })
  const long = authority.issue({ days: 90 })
  expect(await doctor('--tls-cert', long.cert, '--tls-key', long.key)).toMatchObject({
    ok: true,
    tls: { state: 'ok', found: expect.stringMatching(/^a certificate for DNS:localhost, .* until \d{4}-\d{2}-\d{2}$/) },
  })
  expect(await doctor(...FLAGS)).toMatchObject({ ok: true, tls: { state: 'note', found: expect.stringContaining('ends on') } })
  const ended = authority.issue({ days: -1 })
  expect(await doctor('--tls-cert', ended.cert, '--tls-key', ended.key)).toMatchObject({ ok: false, tls: { state: 'wrong', found: expect.stringContaining('has ended on') } }) // prettier-ignore
  expect(await doctor('--tls-cert', 'cert.pem', '--tls-key', long.key)).toMatchObject({ ok: false, tls: { state: 'wrong', found: expect.stringContaining('is not the key') } }) // prettier-ignore
  expect(await doctor('--tls-cert', 'none.pem', '--tls-key', 'key.pem')).toMatchObject({ ok: false, tls: { state: 'wrong', found: expect.stringContaining('cannot be read') } }) // prettier-ignore
})
