/** The REST API of a server's own ledger, and what holds for its money however it is moved. */
import { payments } from '../requirement.ts'

export const paymentsRest = payments('REST API', {
  'payments-rest:verify': ['verify', 'A token is said to be valid with its balance, currency and end, or not to be, and why.'],
  'payments-rest:lock': ['lock', 'A seller locks money of a token for an agent that it pays, locks more, and sees the lock.'],
  'payments-rest:lock-payer': ['lock', 'A payer without a token locks an amount for an audience, and gets a token for it.'],
  'payments-rest:settle': ['settle', 'A lock is settled by amount or by usage, in parts, and the rest is given back.'],
  'payments-rest:settle-once': ['settle', 'The same idempotency key moves money once, however often and at once it is sent.'],
  'payments-rest:expired': ['lock', 'A lock that has expired is not settled, and its money goes back.'],
  'payments-rest:delegate': ['delegate', 'A token is split for another agent within its balance, its depth and its time.'],
  'payments-rest:tokens': ['tokens', 'Tokens are made, listed in pages, topped up and revoked; the text of one is shown once.'],
  'payments-rest:statements': ['statements', 'Movements are listed in pages, the newest first.'],
  'payments-rest:state': [
    'payments',
    'A payment names its question, principal, response and amount, and whether it is authorised, settling, settled or given back.',
  ],
  'payments-rest:transfers': ['deposit, withdraw', 'An operator fills and empties accounts, once for each key.'],
  'payments-rest:refund': ['refund', 'A payment is given back once, whole or in parts, also by two at once.'],
  'payments-rest:others': ['rights', 'Locks, tokens, accounts and payments of others are not found.'],
  'payments-rest:operator': [
    'rights',
    'Money is made by tokens with `bank` alone, and by whoever calls a server on this machine that knows no tokens.',
  ],
  'payments-rest:bad-input': ['errors', 'What is wrong is refused with 4xx, the field that is wrong, and no money moved.'],
  'payments-rest:secrets': ['secrets', 'No list, log or error repeats the text of a token.'],
  'payments-rest:command-line': ['command line', '`uamp pay` does the same from a terminal, and `uamp ledger check` adds up.'],
})
