import type { KeyFacts, KeyedSigner } from '../auth/signer.ts'
import type { Purpose } from '../core/ports/keys.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Revocation, Revocations } from '../core/ports/revocations.ts'
import { UampError } from '../protocol/errors.ts'

export type Revoked = Revocation & { readonly at: number }

/** What operators do with the keys of a server, and with those whom it no longer believes. */
export interface IdentityControl {
  keys(): Promise<readonly KeyFacts[]>
  /** Makes the next keys sign: those of one purpose, or all that there are. Gives the keys that sign now. */
  rotate(purpose?: Purpose): Promise<readonly KeyFacts[]>
  /** `cut`: how many connections were. `withdrawn`: the key was one of this server's. */
  revoke(what: Revocation): Promise<{ readonly cut: number; readonly withdrawn: boolean }>
  /** False: it was not revoked. */
  restore(what: Revocation): Promise<boolean>
  revoked(): Promise<readonly Revoked[]>
}

export interface IdentityParts {
  readonly signer: KeyedSigner
  readonly revocations: Pick<Revocations, 'revoke' | 'restore' | 'list'>
  /** What a secret of this server is not in any more. */
  readonly secrets?: Pick<Redaction, 'text'>
}

export function identityControl({ signer, revocations, secrets }: IdentityParts): IdentityControl {
  const signing = async (): Promise<readonly KeyFacts[]> => (await signer.list()).filter(({ state }) => state === 'signs')
  return {
    keys: () => signer.list(),
    async rotate(purpose) {
      const purposes = purpose === undefined ? (await signing()).map((key) => key.purpose) : [purpose]
      for (const each of purposes) await signer.rotate(each)
      return (await signing()).filter((key) => purposes.includes(key.purpose))
    },
    async revoke(what) {
      // It has no id, so that this would refuse nobody, and would keep it in the store for everybody to read.
      if (what.kind === 'token' && secrets && secrets.text(what.id) !== what.id) {
        throw new UampError('invalid_request', 'This is a secret of the config: take it out there, and revoke its principal')
      }
      // First the revocation, which is there at once: to make new keys takes a while.
      const cut = await revocations.revoke(what)
      return { cut, withdrawn: what.kind === 'key' && (await signer.withdraw(what.id)) }
    },
    restore: (what) => revocations.restore(what),
    revoked: async () => revocations.list(),
  }
}
