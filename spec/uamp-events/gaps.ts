/** Behaviour that is still to be built. The shapes of these events are required in shapes.ts. */
import { uampEvents } from '../requirement.ts'

export const payment = uampEvents('payment', {
  'uamp:payment:required': ['3.3, 7.2', 'An agent that wants to be paid sends payment.required and waits before it answers.'],
  'uamp:payment:submit': ['3.3, 5.15', 'payment.submit lets the response that waits for it go on.'],
  'uamp:payment:accepted': ['3.3', 'payment.accepted comes once, before the answer goes on.'],
  'uamp:payment:balance': ['3.3', 'payment.balance follows the end of a paid response.'],
  'uamp:payment:error-codes': ['7.2', 'A payment that is not taken gives payment.error with one of the six codes.'],
  'uamp:payment:retry': ['7.2', 'After a payment.error that says so the payment can be tried again.'],
  'uamp:payment:session-token': ['5.1', 'The payment token of session.create pays for the responses of the session.'],
  'uamp:payment:update-token': ['5.2, 10.3', 'session.update replaces the payment token.'],
  'uamp:payment:input-token': ['5.6', 'The payment token of input.text pays for that interaction.'],
})

export const voice = uampEvents(
  'voice',
  {
    'uamp:voice:invite': ['7.3', 'voice.invite is answered by voice.accept or voice.decline.'],
    'uamp:voice:answer': ['7.3', 'An SDP offer is answered by an SDP answer in voice.accept.'],
    'uamp:voice:end': ['7.3', 'Either side ends a voice session by voice.end, which tells how long it lasted.'],
    'uamp:voice:turn-detection': ['8.1', 'With server_vad the end of speech starts the response.'],
    'uamp:voice:formats': ['8.1', 'Audio goes out in the format and with the voice that the session asks for.'],
  },
  'voice',
)

export const presence = uampEvents(
  'presence',
  {
    'uamp:presence:join': ['10.2', 'A session.create that names a chat joins it, and session.end leaves it.'],
    'uamp:presence:typing': ['5.11, 6.18', 'input.typing reaches the other participants of the chat as presence.typing.'],
    'uamp:presence:online': ['7.1', 'Participants are told who comes online and who goes.'],
    'uamp:presence:message-created': ['7.1', 'A new message reaches every subscriber of the chat.'],
    'uamp:presence:message-read': ['7.1', 'A read receipt reaches the other participants.'],
  },
  'presence',
)

export const delegation = uampEvents(
  'delegation',
  {
    'uamp:delegation:attachments': ['8.5.4', 'delegate takes content ids and finds their items in the conversation.'],
    'uamp:delegation:content-ids': ['8.5.4', 'Content ids are the same on the other side of a delegation.'],
    'uamp:delegation:thinking': ['6.13', 'The thinking of a delegate reaches the parent as tool_progress.'],
    'uamp:delegation:thinking-switch': ['6.13', 'The thinking of a delegate is not forwarded where that is switched off.'],
  },
  'delegation',
)
