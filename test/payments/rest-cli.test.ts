import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { finished, project, serving } from '../cli/run.ts'
import { verifies } from '../support/verifies.ts'

const pay = async (url: string, ...args: readonly string[]) => finished(['pay', ...args, '--url', url])
const printed = async (url: string, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await pay(url, ...args)
  expect([args, code, stderr]).toEqual([args, 0, args[0] === 'token' ? stderr : ''])
  return stdout.trim()
}

verifies('payments-rest:command-line', 'money is made, moved and shown from a terminal', async () => {
  const cwd = await project()
  const { url } = await serving(['--data', 'd'], { cwd })
  const text = await printed(url, 'token', '--amount', '5', '--agents', 'demo', '--expires', '1d', '--depth', '2')
  expect(text).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
  const { tokens } = JSON.parse(await printed(url, 'tokens', '--json')) as { tokens: { id: string; balance: string; maxDepth: number }[] }
  expect(tokens).toMatchObject([{ balance: '5.00', maxDepth: 2 }])
  const [{ id } = { id: '' }] = tokens
  expect(await printed(url, 'tokens')).toContain(id)
  expect(await printed(url, 'topup', id, '1.5')).toContain('6.50 USD')
  expect(await printed(url, 'deposit', 'alice', '3')).toContain('3.00 USD')
  expect(await printed(url, 'balance', '--principal', 'alice')).toBe('3.00 USD')
  expect(await printed(url, 'statement', '--of', id)).toMatch(/topup +\+1\.50 USD/)
  expect(await printed(url, 'revoke', id)).toContain('has ended')
  expect(await printed(url, 'balance')).toBe('6.50 USD')
  expect(await printed(url, 'statement')).not.toContain(text)
  // The server that uses the folder is asked.
  expect(await finished(['ledger', 'check', '--data', 'd'], { cwd })).toMatchObject({ code: 0, stdout: expect.stringContaining('adds up') })
})

describe('mistakes', () => {
  test.each<[readonly string[], RegExp]>([
    [['balance', '--url', 'http://127.0.0.1:9'], /No server answers at .*uamp serve/],
    [['balance', '--url', 'nowhere'], /--url must be the address/],
    [['token', '--amount', '-1', '--agents', 'demo'], /Write an amount above 0/],
    [['token', '--amount', '1e3', '--agents', 'demo'], /Write an amount above 0/],
    [['token', '--amount', '1', '--agents', ','], /Name the agents/],
    [['token', '--agents', 'demo'], /--amount/],
    [['topup', 'x', 'NaN'], /Write an amount above 0/],
  ])('%j is told what is wrong', async (args, wanted) => {
    const { code, stdout, stderr } = await finished(['pay', ...args])
    expect([code === 0, stdout]).toEqual([false, ''])
    expect(stderr).toMatch(wanted)
  })

  test('whoever has no right is told who has', async () => {
    const cwd = await project()
    writeFileSync(join(cwd, 'tokens'), 'alice:alice-0123456789abcdef\n')
    writeFileSync(join(cwd, 'secret'), 'alice-0123456789abcdef\n')
    const { url } = await serving(['--data', 'd', '--token-file', 'tokens'], { cwd })
    const nobody = await finished(['pay', 'balance', '--url', url], { cwd })
    expect([nobody.code, nobody.stderr]).toEqual([1, expect.stringMatching(/--token-file or \$UAMP_TOKEN/)])
    const alice = await finished(['pay', 'deposit', 'alice', '1', '--url', url, '--token-file', 'secret'], { cwd })
    expect([alice.code, alice.stderr]).toEqual([1, expect.stringMatching(/grant `bank`/)])
    const poor = await finished(['pay', 'token', '--amount', '1', '--agents', 'demo', '--url', url, '--token-file', 'secret'], { cwd })
    expect([poor.code, poor.stderr]).toEqual([1, expect.stringMatching(/1\.00 are needed/)])
  })

  test('a folder without data is no ledger', async () => {
    const cwd = await project()
    rmSync(join(cwd, 'd'), { recursive: true, force: true })
    expect(await finished(['ledger', 'check', '--data', 'd'], { cwd })).toMatchObject({ code: 1, stderr: expect.stringMatching(/no data/) })
  })
})
