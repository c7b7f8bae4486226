import { generateKeyPairSync } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { importKey, isPublicKey } from './key-set.ts'
import { ALGORITHMS, hasSignature, parseToken, type Algorithm } from './token.ts'

const parsed = (text: string) => {
  const token = parseToken(text)
  if ('denied' in token) throw new Error(token.message)
  return token
}

test.each(Object.keys(ALGORITHMS) as Algorithm[])('a signature by %s is right, and nothing else is', async (alg) => {
  const [mine, other] = await Promise.all([generateKeyPair(alg, { extractable: true }), generateKeyPair(alg, { extractable: true })])
  const sign = (sub: string) => new SignJWT({ sub }).setProtectedHeader({ alg }).sign(mine.privateKey)
  const [key, wrongKey] = await Promise.all([mine, other].map(async ({ publicKey }) => importKey({ ...(await exportJWK(publicKey)) }, alg)))
  if (!key || !wrongKey) throw new Error('the key was not imported')
  const [token, another] = await Promise.all([sign('alice'), sign('bob')])
  const swapped = [...token.split('.').slice(0, 2), another.split('.')[2]].join('.')
  const short = token.slice(0, token.lastIndexOf('.') + 5)
  expect(await hasSignature(parsed(token), key)).toBe(true)
  expect(await hasSignature(parsed(swapped), key)).toBe(false)
  expect(await hasSignature(parsed(short), key)).toBe(false)
  expect(await hasSignature(parsed(token), wrongKey)).toBe(false)
})

test('a key for another algorithm checks nothing', async () => {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const token = parsed(await new SignJWT({}).setProtectedHeader({ alg: 'RS256' }).sign(privateKey))
  const key = await importKey({ ...(await exportJWK(publicKey)) }, 'RS512')
  expect(key && (await hasSignature(token, key))).toBe(false)
})

test('a short RSA key is not used', async () => {
  const jwkOf = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' })
  const short = { ...jwkOf(1024) }
  expect(isPublicKey(short, 'RS256')).toBe(true)
  expect(await importKey(short, 'RS256')).toBeUndefined()
  expect(await importKey({ ...jwkOf(2048) }, 'RS256')).toBeDefined()
})
