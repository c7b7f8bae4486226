import { beforeEach } from 'vitest'

/** `UAMP_TRIALS=long`, as in `.ci/run`: trials for as long as they find something. Else as long as one waits for `npm test`. */
export const isLong = process.env['UAMP_TRIALS'] === 'long'

/** Skips the tests of this `describe` unless trials are long, and says why. */
export function onlyInLongTrials(why: string, isPossible = true): void {
  beforeEach(({ skip }) => {
    skip(!isLong, `${why}; UAMP_TRIALS=long runs it`)
    skip(!isPossible, why)
  })
}
