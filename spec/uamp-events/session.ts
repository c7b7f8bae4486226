/** Sessions, capabilities and versions: UAMP events §5.1 to §5.5, §6.1 to §6.4, §9, §10, §14. */
import { uampEvents } from '../requirement.ts'

export const session = uampEvents('session', {
  'uamp:session:create-first': [
    '5.1',
    'Without a session.create there is no session: an event that needs one gets session.error and runs nothing.',
  ],
  'uamp:session:created': ['6.1', 'Each accepted session.create is answered by exactly one session.created.'],
  'uamp:session:object': ['8.8', 'session.created shows the session: an id of its own, created_at in seconds, status active.'],
  'uamp:session:config': ['8.8', 'The session object shows the whole configuration in force.'],
  'uamp:session:config-reaches-agent': [
    '8.1',
    'Instructions, tools and extensions of the session reach the agent; extensions as they came.',
  ],
  'uamp:session:provider-extensions': [
    '5.1, 8.1',
    'Extensions keyed by provider choose its model and switch its thinking, as in the example: openai.model, anthropic.thinking.',
  ],
  'uamp:session:echo': ['6.1', 'session.created repeats the agent and the chat that were asked for.'],
  'uamp:session:chat': ['5.1, 6.1', 'The chat of a session is told to agents, and to a client that resumes it.'],
  'uamp:session:agent': ['5.1', '`agent` chooses who answers, also when several share a connection.'],
  'uamp:session:agent-offline': ['6.3', 'An agent that is not there gives session.error `agent_offline`, with details.retry_after.'],
  'uamp:session:token': ['5.1', '`token` on session.create authenticates that session.'],
  'uamp:session:unauthorized': ['6.3', 'A wrong token gives session.error `unauthorized` and no session.'],
  'uamp:session:update-token': ['5.2, 10.3', 'A new token by session.update is confirmed by session.updated, without a new connection.'],
  'uamp:session:update-scope': ['5.2, 6.2', 'With `session_id` the update is for that session only, and session.updated names it.'],
  'uamp:session:update-connection': ['5.2', 'Without `session_id` the update is for the connection and what it opens from then on.'],
  'uamp:session:update-refused': [
    '6.3, 10.3',
    'A refreshed token that is wrong gives session.error `unauthorized`, and no session.updated.',
  ],
  'uamp:session:update-config': ['15', 'session.update can change the configuration; later responses follow it.'],
  'uamp:session:end-by-client': ['5.3', 'session.end from the client ends the session: later events for it are refused.'],
  'uamp:session:end-by-server': ['5.3', 'The server may end a session: it sends session.end with a reason.'],
  'uamp:session:rate-limited': ['6.3', 'Too many requests give session.error `rate_limited`, with details.retry_after.'],
  'uamp:session:flood': [
    '6.3',
    'A client that sends too many events is told `rate_limited` with retry_after; each event is taken or refused, and others notice nothing.',
  ],
  'uamp:session:timeout': ['6.3', 'A session that ran out of time is told so by session.error `timeout`.'],
  'uamp:session:error-scope': ['6.3', 'What fails for a session comes as session.error, what fails for a response as response.error.'],
  'uamp:session:single': ['10.1', 'With one session on a connection `session_id` may be left out everywhere.'],
  'uamp:session:multiplex': ['10.1', 'Each session.create on a connection opens a session with a session_id of its own.'],
  'uamp:session:multiplex-routing': ['10.1', 'An event with a session_id reaches that session and no other.'],
  'uamp:session:multiplex-stamp': ['10', 'Every event that the server sends for a session carries its session_id.'],
  'uamp:session:multiplex-required': ['4, 10', 'With several sessions an event without session_id is refused, not guessed.'],
  'uamp:session:multiplex-concurrent': ['10', 'Responses of several sessions on one connection run at the same time.'],
  'uamp:session:multiplex-tokens': ['10.2, 10.3', 'Each session on a connection may have a token of its own.'],
  'uamp:session:platform': [
    '10.2',
    'A platform may send an interaction under a new session id with the whole conversation: its input starts the response.',
  ],
  'uamp:session:multiplex-end': ['10.2', 'Ending one session leaves the others on the connection as they are.'],
})

export const capabilities = uampEvents('capabilities', {
  'uamp:capabilities:required': ['9', 'Id, provider, modalities and the three supports flags always stand in what we announce.'],
  'uamp:capabilities:unified': ['9', 'Models, clients and agents are described in one structure, with all its optional parts.'],
  'uamp:capabilities:after-created': ['6.4, 9.1', 'A capabilities event follows session.created.'],
  'uamp:capabilities:query': ['5.4, 9.1', 'capabilities.query is answered by capabilities, at any time, also during a response.'],
  'uamp:capabilities:on-change': ['6.4, 9.1', 'When what the agent can do changes in mid-session, a capabilities event says so.'],
  'uamp:capabilities:model': ['5.4', 'capabilities.query with a model is answered for that model.'],
  'uamp:capabilities:model-change': ['6.4', 'When another model answers (a fallback, a chosen one), a capabilities event says so.'],
  'uamp:capabilities:client': ['9.1', 'What the client announced in session.create is known to the session.'],
  'uamp:capabilities:streaming': ['9', 'A client that says supports_streaming: false gets its answer in one piece, in response.done.'],
  'uamp:capabilities:thinking': ['9', 'A client that says supports_thinking: false gets no thinking, neither streamed nor in the output.'],
  'uamp:capabilities:tools': ['9', "A client that says tools.supports_tools: false does not see the calls of the agent's own tools."],
  'uamp:capabilities:modalities': ['9', "Media that is not among the client's modalities is told in words, with its handle or address."],
  'uamp:capabilities:provides': [
    '9',
    'An agent names what it provides, and the paths of the HTTP and WebSocket endpoints that are its own.',
  ],
  'uamp:capabilities:widgets': ['9', 'A client that names its widgets hears only of those that it shares with the agent.'],
  'uamp:capabilities:client-update': ['5.5, 9.1', 'client.capabilities replaces what the client announced before.'],
})

export const version = uampEvents('version', {
  'uamp:version:client-sends': ['14.2', 'Our client names its version in session.create.'],
  'uamp:version:echo': ['6.1, 14.2', 'session.created names the version that the server speaks.'],
  'uamp:version:mismatch': ['14.2', 'Another version gives response.error `version_mismatch`, which says what is supported.'],
  'uamp:version:minor': ['14.3', 'A client of another minor version is welcome.'],
  'uamp:version:major': ['14.3', 'A client of another major version is refused.'],
  'uamp:version:new-values': ['14.3', 'Names that minor versions may add to (formats, details, modalities, reasons) are not refused.'],
  'uamp:version:unknown-fields': ['14.3', 'Fields that are not known are ignored.'],
  'uamp:version:unknown-event': ['14.3', 'An event of unknown type is not an error.'],
  'uamp:version:unknown-event-logged': ['14.3', 'An event of unknown type is logged, gets no error, and the session goes on.'],
  'uamp:version:extensions': ['14.3', 'Extension slots are kept exactly as they came.'],
})
