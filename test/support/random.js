// @ts-check

/**
 * Numbers that look random and are the same for the same seed (mulberry32).
 *
 * @typedef {ReturnType<typeof randomFrom>} Random
 * @param {number} seed
 */
export function randomFrom(seed) {
  let state = seed >>> 0
  /** From 0 to 1, without 1. */
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** A whole number from `low` to `high`, both included. @param {number} low @param {number} high */
  const whole = (low, high) => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    whole,
    /** @param {number} share */
    chance: (share) => next() < share,
    /** @template T @param {readonly T[]} list @returns {T} */
    pick: (list) => /** @type {T} */ (list[Math.floor(next() * list.length)]),
    /** Another sequence, which does not depend on how often this one is asked. */
    fork: () => randomFrom(whole(0, 2 ** 32 - 1)),
  }
}
