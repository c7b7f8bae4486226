import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { filesBelow } from '../../scripts/build.js'

/** Files that may read the wall clock of the machine, and why. Everybody else is handed `now` for what is shown, or measures. */
const READERS = [
  'src/cli/chat/talk.ts', // when a chat began, for the list of chats
  'src/cli/commands/models.ts', // the day of a table
  'src/cli/commands/store.ts', // what is older than a time that somebody names
  'src/cli/doctor/machine.ts', // the clock itself is checked
  'src/cli/doctor/tls.ts', // when a certificate ends
  'src/client/tokens.ts', // a token says when it ends by the wall clock
  'src/client/verify.ts', // so does a signature
  'src/client/wallet/budget.ts', // the day that a budget is for
  'src/core/basics/time.ts', // the default of `now`
  'src/core/http/upstream-error.ts', // a `Retry-After` that is a date, from a server that does not say what time it has
  'src/serve/connect/offer.ts', // when the token of a connected agent ends
  'src/server/node/log.ts', // the time of a line, where there is no pino
  'src/stores/memory-blobs.ts', // as the dates of files
]

test('the wall clock is read where it is meant to be', () => {
  const found = filesBelow('src').filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  expect(found.filter((file) => readFileSync(file, 'utf8').includes('Date.now')).toSorted()).toEqual(READERS)
})
