// @ts-check

/** Tokens of servers that only the bench can reach. */
export const CALLER = 'caller-of-the-bench'
export const GUEST = 'guest-of-the-bench'
