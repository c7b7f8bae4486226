import fc from 'fast-check'
import { expect, test } from 'vitest'
import { signedText } from '../../src/envelope/canonical.ts'
import { importedKey } from '../../src/envelope/did-document.ts'
import { hashOf, readEnvelope, readSignature, signEnvelope, verifySignature, type SigningKey } from '../../src/envelope/index.ts'
import { isLong } from '../support/trials.ts'
import { CLIENT } from '../support/envelopes.ts'
import { chooser, messages, written } from './generate.ts'
import { canonicalOf, makeParty, sha256Of, signedBy, verifiedBy, type Party } from './jose.ts'

const TRIALS = isLong ? 20_000 : 1000
const SIGN = { ES256: { name: 'ECDSA', hash: 'SHA-256' }, EdDSA: { name: 'Ed25519' } } as const

/** The same keys, for us. */
async function ours({ alg, kid, privateKey, jwk }: Party) {
  const key = await importedKey(kid, jwk)
  if (!key) throw new Error('It is no key')
  const sign = async (bytes: Uint8Array) => new Uint8Array(await crypto.subtle.sign(SIGN[alg], privateKey, bytes as BufferSource))
  return { signing: { id: kid, alg, sign } satisfies SigningKey, key }
}

test.each(['ES256', 'EdDSA'] as const)(
  `an implementation of others and ours agree about ${TRIALS / 2} messages signed with %s`,
  async (alg) => {
    const party = await makeParty(alg, `${CLIENT}#1`)
    const other = await makeParty(alg, `${CLIENT}#1`)
    const { signing, key } = await ours(party)
    const { key: otherKey } = await ours(other)
    const asReceived = async (text: string, keys = [key]) => {
      const { members, envelope } = readEnvelope(text)
      return (await verifySignature(members, readSignature(envelope.sig), keys)).hash
    }
    const agree = async (message: Parameters<typeof signEnvelope>[0], seed: number) => {
      const choose = chooser(seed)
      const text = canonicalOf(message)
      const hash = sha256Of(message)
      expect([signedText(message), await hashOf(message)]).toEqual([text, hash])
      // Ours, as anybody may write it down.
      const envelope = await signEnvelope(message, signing)
      const sent = written(envelope, choose)
      expect(canonicalOf(JSON.parse(sent) as object as Record<string, unknown>)).toBe(text)
      expect([await verifiedBy(party, sent), await asReceived(sent)]).toEqual([hash, hash])
      // Theirs, the same.
      const sig = await signedBy(party, message)
      expect(sig.split('.')[0]).toBe(envelope.sig.split('.')[0])
      expect(await asReceived(written({ ...message, sig }, choose))).toBe(hash)
      // Neither takes it for another's, or for another message.
      if (choose(8) !== 0) return
      const another = written({ ...message, sig, body: { ...message.body, content: `${message.body.content}.` } }, choose)
      for (const run of [
        () => asReceived(sent, [otherKey]),
        () => verifiedBy(other, sent),
        () => asReceived(another),
        () => verifiedBy(party, another),
      ]) {
        await expect(run()).rejects.toThrow()
      }
    }
    await fc.assert(fc.asyncProperty(messages(CLIENT), fc.nat(), agree), { numRuns: TRIALS / 2 })
  },
  600_000,
)
