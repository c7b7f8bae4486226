/** What agents, their tools and models cost, and how callers learn of it. */
import { paid } from '../requirement.ts'

export const prices = paid('Prices', {
  'prices.call': ['per call', 'A price per call is charged before the agent runs, and only if it answers.'],
  'prices.usage': [
    'per use',
    'Tokens, cached tokens at their own rate, and seconds of audio are charged exactly, and the sum is rounded once, up.',
  ],
  'prices.told-once': ['per use', 'Usage that an agent tells piece by piece, at its end, or in both ways, is charged once.'],
  'prices.untold': [
    'per use',
    'An answer whose usage nobody told, or that its reader stopped, is charged by an estimate within the reserve.',
  ],
  'prices.reserve': [
    'reserve',
    'An agent that is paid by usage does not run before its reserve is locked, and what it does not use is given back.',
  ],
  'prices.cost': ['usage.cost', 'The cost in the usage of a response is what was charged for it.'],
  'prices.free': ['free quota', 'Free calls cost nothing, and are counted for each principal, hour, day or month.'],
  'prices.tools': [
    'tools',
    'A tool costs its price, fixed or by its lock and settle functions, however it was declared; one that fails costs nothing.',
  ],
  'prices.shown': ['discovery', 'Capabilities, agent cards, lists of models, ACP, AG-UI and the command line show the same price.'],
  'prices.config': ['config', 'Prices and payments in a config file are exact texts, and every mistake in them is told with its line.'],
  'prices.resold': ['remote agents', 'An agent elsewhere can be offered here at a price of its own, in every protocol.'],
})

/** Tokens of a ledger elsewhere. */
export const outsideLedger = paid('A ledger elsewhere', {
  'platform.pays': [
    'verify, lock, settle',
    'A token of another ledger is verified and locked there before the agent runs, and settled before its end is told.',
  ],
  'platform.refuses': ['payment_failed', 'A ledger that is down, slow, or says what cannot be gives payment_failed, and moves no money.'],
  'platform.once': ['settle', 'A settlement is repeated with one idempotency key until its outcome is known, also after a restart.'],
  'platform.secret': ['tokens', 'The token of a payer is not stored, and reaches neither log nor errors.'],
})
