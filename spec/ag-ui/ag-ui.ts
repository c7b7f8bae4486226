/** AG-UI as a server, and as a client. */
import { agUi } from '../requirement.ts'

export const agUiTransport = {
  ...agUi('AG-UI 1.0', {
    'ag-ui.order': [
      'event ordering',
      'A run begins with RUN_STARTED and ends once; what is begun is ended before it, and nothing is begun twice.',
    ],
    'ag-ui.profile': ['protocolVersion', 'Clients that name no version get only what clients of 0.0.x accept.'],
    'ag-ui.version': ['protocolVersion', 'A version that is not spoken is refused, with those that are.'],
    'ag-ui.sse': ['HTTP binding', 'Events are server-sent events of one data line, with line feeds alone, and no end marker.'],
    'ag-ui.proto': ['HTTP binding', 'Protobuf is sent to those who name its media type, and to nobody else.'],
    'ag-ui.input': ['RunAgentInput', 'threadId, runId and messages are required; everything else may be left out or null.'],
    'ag-ui.multimodal': ['messages', 'Content parts of 1.0 and the binary parts of 0.0.x reach the agent as media.'],
    'ag-ui.context': ['RunAgentInput', 'State, context, forwarded properties and instructions reach the agent.'],
    'ag-ui.thread': ['messages', 'A thread is one conversation: messages that are there already are recognised by their id.'],
    'ag-ui.branch': [
      'parentRunId',
      'A run may go on from an earlier one of its thread, or from an earlier message, also an edited first one.',
    ],
    'ag-ui.text': ['text message events', 'Text is streamed between a start and an end.'],
    'ag-ui.reasoning': ['reasoning events', 'Thoughts are reasoning messages of role "reasoning"; what is encrypted stays with them.'],
    'ag-ui.tools': ['tool call events', 'Calls stream their arguments, and have their results.'],
    'ag-ui.client-tools': ['tools', 'A call of a tool of the page ends the run, and the next run brings the result.'],
    'ag-ui.state': ['state events', 'State is told as snapshots and as patches of RFC 6902.'],
    'ag-ui.shared-state': ['state events', 'The state of a thread is kept; who joins the thread, or asks, is told it as STATE_SNAPSHOT.'],
    'ag-ui.timestamp': ['base event properties', 'Events of a live run have a timestamp in milliseconds.'],
    'ag-ui.run-input': ['RUN_STARTED', 'A client that asks for it is told the input of its run, without its payment, also in a replay.'],
    'ag-ui.result': ['RUN_FINISHED', 'The result that an agent gives its run is told with the end.'],
    'ag-ui.encrypted': [
      'REASONING_ENCRYPTED_VALUE',
      'Encrypted values of messages and of tool calls are kept, and reach the agent, also when the client brings them.',
    ],
    'ag-ui.activity': ['activity events', 'Activities, steps, custom and raw events of agents are told.'],
    'ag-ui.subagents': ['subagent events', 'Subagents are told with ids that are not used twice and parents that have begun.'],
    'ag-ui.interrupt': ['interrupts', 'A question ends the run with an interrupt, and "resume" answers it.'],
    'ag-ui.interrupt-pending': [
      'interrupts',
      'A run on a thread that waits for a decision is refused until it brings one; a client of 0.0.x may say something else instead.',
    ],
    'ag-ui.usage': ['RUN_FINISHED', 'Usage is told with the end; what a cache gave is a part of the input.'],
    'ag-ui.error': ['RUN_ERROR', 'An agent that fails ends the run with RUN_ERROR and its code.'],
    'ag-ui.cancel': ['HTTP binding', 'A client that leaves stops the agent, unless it asked to detach.'],
    'ag-ui.capabilities': ['capabilities', 'An agent tells what it can do as AgentCapabilities.'],
    'ag-ui.snapshot': ['MESSAGES_SNAPSHOT', 'A client that joins a conversation is told what was said.'],
  }),
  ...agUi('UAMP transports', {
    'ag-ui.payment-asked': ['payment handling', 'What has to be paid first is 402 before the stream, and an interrupt in it.'],
    'ag-ui.resume': ['sessions', 'A run is told again from its beginning, or from after an event that the client names.'],
  }),
}

export const agUiRemote = agUi('AG-UI 1.0', {
  'ag-ui-remote.events': ['events', 'Every event of a run becomes what it is here.'],
  'ag-ui-remote.chunks': ['convenience events', 'The chunk forms of text, tool calls and reasoning are understood.'],
  'ag-ui-remote.thinking': ['deprecated events', 'The thinking events of 0.0.x are understood.'],
  'ag-ui-remote.tools': ['tools', 'Calls that a run leaves open are put to our client, and the next run brings the results.'],
  'ag-ui-remote.interrupt': ['interrupts', 'Interrupts become questions to our client, whose answers resume the run.'],
  'ag-ui-remote.meta': ['draft events', 'META becomes a custom event named "meta.…", for clients of AG-UI as CUSTOM.'],
  'ag-ui-remote.raw-event': ['base event properties', 'The rawEvent of an event is told to clients of AG-UI as RAW.'],
  'ag-ui-remote.roles': [
    'text message events',
    'Texts of other roles are no part of the answer; clients of AG-UI are told them with their role.',
  ],
  'ag-ui-remote.encrypted': ['REASONING_ENCRYPTED_VALUE', 'Encrypted values of texts and tool calls go back with the next run.'],
  'ag-ui-remote.cancel': ['HTTP binding', 'A cancel closes the request.'],
  'ag-ui-remote.error': ['RUN_ERROR', 'RUN_ERROR, a refusal and a stream that is cut off end the response as failed.'],
})
