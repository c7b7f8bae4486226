// @ts-check

/** Who may call a server that wants tokens: Alice sends the cases, and Bob is the bystander. */
export const TOKENS = { alice: 'alice-5e0d1c3f7a9b2468', bob: 'bob-9f8e7d6c5b4a3210' }
