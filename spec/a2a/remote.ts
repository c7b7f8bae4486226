/** A2A as a client: what an agent elsewhere may expect of us. */
import { a2a } from '../requirement.ts'

export const a2aRemote = {
  ...a2a('1.0.1', {
    'a2a-remote.interface': ['8.3.2', 'Of the interfaces that a card names, the first that is spoken here is asked, at its own URL.'],
    'a2a-remote.tenant': ['8.3.2', 'The tenant of the chosen interface is in every request; where it has none, in none.'],
    'a2a-remote.version': ['3.6.1', 'A2A-Version is sent with each request, and not to agents of older generations.'],
    'a2a-remote.discovery': ['8.2', 'The card is found below the address of the agent, with or without a slash at its end, or at its own.'],
    'a2a-remote.cache': ['8.6.2', 'A card is kept as long as it says, and then asked for with If-None-Match.'],
    'a2a-remote.stream': ['3.1.2', 'Whoever can stream is asked to, and what it says is passed on as it comes.'],
    'a2a-remote.capability': [
      '3.3.4',
      'Whoever cannot stream, by its card or by its refusal, is not asked to: its task is looked at until it settles.',
    ],
    'a2a-remote.message': ['3.1.1', 'A message without a task is an answer.'],
    'a2a-remote.append': ['4.2.2', 'Pieces are appended to their artifact, or replace it; whatever repeats them is told once.'],
    'a2a-remote.parts': ['4.1.6', 'Text, files by their bytes and by URL, and data go out and come in.'],
    'a2a-remote.subscribe': ['3.1.6', 'A stream that breaks is taken up again: nothing is lost, nothing told twice.'],
    'a2a-remote.context': ['3.4.1', 'A conversation goes on in the context that the agent named; none is made up.'],
    'a2a-remote.follow-up': ['3.4.3', 'The answer to a question has the taskId and contextId of the task that asked.'],
    'a2a-remote.auth-required': ['7.6.2', 'A task that wants an authorisation passes that on to our client.'],
    'a2a-remote.cancel': ['3.1.5', 'A cancel of ours cancels the task.'],
    'a2a-remote.states': ['4.1.3', 'Failed, rejected and cancelled tasks end the response as what they are.'],
    'a2a-remote.errors': ['5.4', 'Every error of the protocol has one of ours, over JSON-RPC and REST.'],
    'a2a-remote.extension': ['4.6.2', 'An extension is asked for only where the card lists it.'],
    'a2a-remote.credentials': ['7.3', 'Credentials are shown as the security schemes of the card want them.'],
  }),
  ...a2a('0.3', {
    'a2a-remote.0.3': ['7', 'Agents of 0.3 are asked with message/send, message/stream, tasks/get, tasks/cancel and tasks/resubscribe.'],
    'a2a-remote.0.3-rest': ['3.2.3', 'Over REST they are asked below /v1, in the JSON of its protocol buffers.'],
    'a2a-remote.0.3-card': [
      '5.6',
      'Without supportedInterfaces, `url` with its preferred transport comes first, then additionalInterfaces.',
    ],
  }),
  ...a2a('0.2', { 'a2a-remote.0.2': ['5.3', 'The card of an agent of 0.2 is found at agent.json.'] }),
  ...a2a('0.1', { 'a2a-remote.0.1': ['7', 'An agent that knows only tasks/send and tasks/sendSubscribe is asked with those.'] }),
} as const
