/** What those who pay are promised. */
import { payments } from '../requirement.ts'

export const walletRequirements = payments('Paying', {
  'wallet.pays': ['client', 'A wallet answers `payment.required`, at the beginning of an answer and in the middle of it.'],
  'wallet.once': ['client', 'A question is paid once, however often the connection is lost.'],
  'wallet.declines': ['client', 'A wallet that does not pay ends the answer, and its reason is what the application gets.'],
  'wallet.by-hand': ['client', 'Without a wallet the application sees the question, and pays or declines.'],
  'budget.bounds': ['budget', 'No answer and no day costs more than it may, also when 64 are asked at once.'],
  'budget.gives-back': ['budget', 'What was not charged may be spent again; a signed proof counts in full.'],
  'budget.approval': ['budget', 'An answer that costs more than a limit is paid only if somebody approves.'],
  'split.exact': [
    'delegated tokens',
    'Each demand is paid with a token of its own, with no more money and less depth; the rest goes back.',
  ],
  'x402-wallet.bounds': ['x402', 'A proof is signed for known contracts only, and for no more than the budget counts.'],
  'remote-pay.wallet': ['remotes', 'A remote agent of every protocol is paid by the wallet, and its answer comes.'],
  'remote-pay.over': ['remotes', 'A remote agent that wants more than the budget gets nothing, and the turn says why.'],
  'remote-pay.approval': ['remotes', 'A payment above the limit is approved by whoever asks us.'],
  'remote-pay.relay': ['remotes', 'Without a wallet whoever asks us is asked, and nothing is taken here.'],
  'remote-pay.told': ['remotes', 'The end of the answer tells what was paid to others, and not as if our caller had paid it.'],
  'remote-pay.private': ['remotes', 'What the remote agent says of the balance of our wallet is not passed on.'],
  'hand-on.both-paid': ['delegation', 'A paid agent pays another one with a part of what its caller paid: both are paid.'],
  'hand-on.bounds': ['delegation', 'No more is handed on than the budget of the remote, the money and the depth of the token allow.'],
  'hand-on.gives-back': ['delegation', 'What the other agent did not take goes back, also when it dies.'],
  'chat-pay.asks': ['chat', '`uamp chat` asks before it pays, says why an agent wants money, and shows what is left.'],
  'chat-pay.pipe': ['chat', 'A chat in a pipe declines and says so, unless it has a budget.'],
  'chat-pay.secret': ['chat', 'No token is ever printed.'],
})
