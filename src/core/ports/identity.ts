import type { Actor } from './access.ts'
import type { SignKey } from './keys.ts'

/** This server, as it names itself to other servers. */
export interface Identity {
  /** Its URL, which is the issuer of its tokens. Undefined: it has none, so it can sign nothing. */
  url(): string | undefined
  /** Makes an access token. Throws if the server has no URL. */
  mint(token: TokenFor): Promise<Minted>
  /** The key that signs messages to other organisations. */
  envelopeKey(): Promise<SignKey>
}

interface TokenFor {
  /** The agent's name, or the id of somebody that this server knows. */
  readonly subject: string
  /** The subject is an agent of this server. A caller may have the same name, and is somebody else. */
  readonly isAgent?: true
  /** The URL of the server, or of the agent, that the token is for. */
  readonly audience: string
  readonly scope: readonly string[]
  /** The agent that asks for it. Default: the subject. */
  readonly client?: string
  /** Who acts for the subject. */
  readonly actor?: Actor | undefined
  /** Milliseconds since 1970: the token must not outlive this. */
  readonly until?: number | undefined
}

interface Minted {
  readonly token: string
  readonly expiresInMs: number
}
