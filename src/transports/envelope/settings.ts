/** Signed envelopes between organisations. */
export interface EnvelopeOptions {
  /**
   * Who may sign as whom: the name of a caller by DID. It is that of `tokens`, or for callers of an issuer its URL and their name there:
   * `https://login.example.com/partner`. Callers whose own name is the DID, or the URL that the DID stands for, need no entry.
   */
  readonly senders?: Readonly<Record<string, string>>
  /** Keys of senders that have no `did:web` document that can be read: a JWK Set by DID. */
  readonly keys?: Readonly<Record<string, { readonly keys: readonly object[] }>>
  /** DIDs whose capability tokens count. */
  readonly anchors?: readonly string[]
  /** How far a message's time may be from ours, in seconds. Default: 300. */
  readonly skewSeconds?: number
  /** The largest body, unpacked. Default: 1,024 kB. */
  readonly maxBodyKb?: number
}

/** What the server adds to what its operator says. */
export interface EnvelopeParts extends EnvelopeOptions {
  /** For development on one machine: messages over plain HTTP, from callers without a token, and DID documents over plain HTTP. */
  readonly insecureDev?: boolean
  /** Unpacks brotli. Default: such bodies are refused. */
  readonly brotli?: (packed: Uint8Array, maxBytes: number) => Promise<Uint8Array>
}

export interface EnvelopeSettings extends Required<Pick<EnvelopeParts, 'skewSeconds' | 'maxBodyKb' | 'insecureDev'>> {
  readonly brotli: EnvelopeParts['brotli']
}
