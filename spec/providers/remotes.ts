/** Agents elsewhere, as agents: what comes through, and what happens when it does not. */
import { provider } from '../requirement.ts'

export const remoteEvents = provider('Remote over UAMP events', {
  'remote-events.same': [
    'UAMP events §6',
    'What the agent there says comes through as it is: text, thinking, media, progress, usage, errors.',
  ],
  'remote-events.any-server': ['UAMP events §13', 'A server that takes one event a POST beside a stream, or a WebSocket, is spoken to.'],
  'remote-events.new-values': ['UAMP events §14.3', 'Kinds of content, deltas, events and values that are not known end no response.'],
  'remote-events.conversation': ['conversation', 'The agent there is given the whole conversation.'],
  'remote-events.settings': ['UAMP events §8.1', 'Instructions, tools, format and extensions of the client reach the agent there.'],
  'remote-events.tools': [
    'UAMP events §6.10',
    'A call of a client’s tool is asked here and answered there; calls made together are asked together.',
  ],
  'remote-events.approvals': ['approvals', 'Approvals are asked here, and denied where nobody here understands them.'],
  'remote-events.one-way': [
    'one-way protocols',
    'Over Completions and Responses its questions end the answer, and the next request brings the result.',
  ],
  'remote-events.cancel': ['UAMP events §5.13', 'A cancel here, and leaving, stop the agent there.'],
  'remote-events.sessions': ['sessions', 'Sessions that were opened there end with the turns they were opened for.'],
  'remote-events.end': ['UAMP events §6.7', 'Why it stopped, its signature, refusals, usage and cost come through.'],
  'remote-events.capabilities': ['UAMP events §6.4', 'What it can do is told to open sessions when it is known, and when it changes.'],
  'remote-events.unreachable': [
    'failures',
    'A server or agent that is not there, or a token that is wrong, is an error; the token is not told.',
  ],
  'remote-events.cut': ['failures', 'A server that goes away in the middle of an answer ends it as an error, never as done.'],
})

export const remoteCompletions = provider('Remote over Chat Completions', {
  'remote-completions.same': [
    'messages',
    'What Chat Completions can carry comes through as it is, to clients of events and of completions.',
  ],
  'remote-completions.end': ['UAMP events §6.13, §8.7', 'Thoughts, speech, refusals, usage, why it stopped and signatures come through.'],
  'remote-completions.conversation': [
    'messages',
    'Conversation, instructions, media and known settings go along; what it cannot take is named in words.',
  ],
  'remote-completions.tools': ['tool calls', 'A call of a client’s tool is asked here, and its result sent there.'],
  'remote-completions.one-way': [
    'one-way protocols',
    'Over Completions and Responses the call goes on to the client, and the next request has its result.',
  ],
  'remote-completions.tool-ids': ['tool calls', 'Calls in pieces, with ids that come again, are told apart; thoughts go back with them.'],
  'remote-completions.unknown-tool': ['tool calls', 'A call of a tool that nobody has is answered to the other side with an error.'],
  'remote-completions.cancel': ['streaming', 'A cancel closes the connection, which stops the agent there.'],
  'remote-completions.whole': ['create', 'An answer in one piece is understood too.'],
  'remote-completions.errors': ['errors', 'Errors keep their code, and those before the first word their status.'],
  'remote-completions.failures': [
    'errors',
    'A cut stream, an error in it or under 200, a page, or what is not JSON ends the response as an error.',
  ],
})
