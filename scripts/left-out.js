// @ts-check

/** What `npm test -- --fast` leaves out, by the reason why. `npm test` runs it after the rest, when the build and the install are done. @type {Readonly<Record<string, readonly string[]>>} */
export const LEFT_OUT = {
  'needs the clients of test/interop, or a browser': [
    'test/interop/**',
    'test/docs/{snippets,site}.test.ts',
    'test/client/browser.test.ts',
  ],
  'runs the built package in processes of its own': [
    'test/cli/**',
    'test/fresh/**',
    'test/examples/**',
    'test/deploy/**',
    'test/observe/{access-log,hostile}.test.ts',
    'test/secrets/every-place.test.ts',
    'test/tooling/readme.test.ts',
    'test/{closing,resume,kills}.test.ts',
    'test/contract/responses/lost.test.ts',
    'test/a2a/*-crash.test.ts',
    'test/acp/stdio.test.ts',
    'test/remotes/acp*.test.ts',
    'test/omnia/{resume,reconnect,config}.test.ts',
    'src/config/modules.test.ts',
    'test/payments/two-servers.test.ts',
  ],
  'makes many keys and waits for tokens to end, or runs the built package': ['test/identity/**', 'test/connect/**'],
  'takes seconds: thousands of clients, or megabytes': [
    'test/{clock-steps,hostile,isolation,kept-bytes,listeners,nesting,receiving,unread}.test.ts',
    'test/acp/http-{abandoned,streams}.test.ts',
    'test/agents/{llm-isolation,mcp}.test.ts',
    'test/client/reconnect.test.ts',
    'test/matrix/**',
    'test/omnia/large.test.ts',
    'test/openai/unstored-large.test.ts',
    'test/tooling/{import-rules,platforms}.test.ts',
    'src/server/node/limits.test.ts',
  ],
  'is a long trial': ['test/{chaos,money}/**', 'test/fuzz/fuzz.test.ts', 'test/sizes/**', 'test/month.test.ts'],
}

/** @type {Readonly<Record<string, readonly string[]>>} */
const LONG_ONLY = {
  'one minute for six seconds of fuzzing: `npm run fuzz` does it': ['test/fuzz/fuzz.test.ts'],
  'the smaller sizes take the same ways: `npm run sizes` tries all of them': ['test/sizes/large.test.ts'],
}

/**
 * What only long trials run, by the reason why: `.ci/run`, whoever sets `UAMP_TRIALS=long`, and whoever names the file. Where a skipped
 * test is a failure, nothing is left out.
 *
 * @param {NodeJS.ProcessEnv} env
 */
export function longOnly(env) {
  return env['UAMP_TRIALS'] === 'long' || env['UAMP_NO_SKIPS'] === '1' ? {} : LONG_ONLY
}
