/** `UAMP_TRIALS=long`, as in `.ci/run`: trials for as long as they find something. Else as long as one waits for `npm test`. */
export const isLong = process.env['UAMP_TRIALS'] === 'long'
