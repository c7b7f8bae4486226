/** Agents without an address: a process offers them over a socket to a host, and the host's callers reach them over every protocol. */
import { connect } from '../requirement.ts'

export const hostedAgents = connect({
  'connect.host': [
    'UAMP events §5.1',
    'A session whose token may host the agent that it names offers that agent, and is answered with its name.',
  ],
  'connect.plain': [
    'UAMP events §10.2',
    'An end that knows only the specification hosts an agent by its own token, and need not send response.created or the body of response.done.',
  ],
  'connect.interaction': [
    'UAMP events §10.2',
    'Each request comes under a session id of its own, with text, messages and context; every event of the answer carries that id.',
  ],
  'connect.once': ['UAMP events §10.2', 'At the connecting end an input.text starts one response, never two.'],
  'connect.settings': ['every protocol', 'Instructions, tools, format, client and caller reach the hosted agent.'],
  'connect.every-protocol': ['every protocol', 'Clients of other protocols reach a hosted agent as if it were local.'],
  'connect.cancel': ['UAMP events §5.13', 'A cancel stops the hosted agent.'],
  'connect.questions': [
    'UAMP events §6.10',
    'Tools of the client, approvals and payments are asked through the host, and the answers reach the agent.',
  ],
  'connect.resume': ['nothing is lost', 'After a cut in the middle of an answer the rest comes exactly once and in order.'],
  'connect.resume-answers': ['nothing is lost', 'A request or an answer that was lost with the socket is sent again, and counts once.'],
  'connect.window': ['nothing is lost', 'An agent that does not come back within the resume window ends its answers with agent_offline.'],
  'connect.restarted': [
    'nothing is lost',
    'A process that was started anew does not answer for the one before: its answers end with an error.',
  ],
  'connect.offline': [
    'UAMP events §6.3',
    'Callers of an agent that is offline get agent_offline with retry_after in their protocol, and it is listed as offline.',
  ],
  'connect.forgotten': ['bounds', 'An agent that stays away is removed, and its name is free.'],
  'connect.takeover': [
    'UAMP events §5.3',
    'A second process takes over: the first gets session.end with daemon_takeover, finishes its answers, and does not come back.',
  ],
  'connect.share': ['several processes', 'With hosting: share several processes answer for a name, the least busy first.'],
  'connect.taken-name': ['safety', 'A name of a local agent, or of another principal, cannot be hosted.'],
  'connect.forbidden': ['safety', 'A token without the right to host a name cannot host it.'],
  'connect.forged': ['safety', 'An answer counts only from the connection that was asked.'],
  'connect.flood': ['safety', 'An agent that floods loses its own answer; other agents and callers do not notice.'],
  'connect.malformed': ['safety', 'What is no event is refused, or ends the answer that it belongs to, and nothing else.'],
  'connect.silence': ['safety', 'A request that the agent says nothing to ends with timeout.'],
  'connect.names': ['safety', "What cannot be an agent's name is refused, whoever may host it."],
  'connect.own-words': ['safety', 'An agent does not speak for the host: not of tokens, and not in headers.'],
  'connect.own-principal': ['safety', 'A token of another principal does not refresh the session of a hosted agent.'],
  'connect.root': ['routing', 'Hosted agents do not change which agent is at the root.'],
  'connect.crowd': ['bounds', 'A hundred agents share one socket.'],
  'connect.drain': ['leaving', 'A process that leaves takes no new requests, finishes its answers, and ends its sessions.'],
  'connect.refresh': ['UAMP events §5.2', 'A token that ends is replaced by session.update.'],
  'connect.config': ['`connect` in a config', 'Each agent of a config is offered with its own token; agents of one host share its socket.'],
  'connect.reconnect': ['UAMP events §13.1', 'The connecting end comes back by itself, however long the host is away.'],
})
