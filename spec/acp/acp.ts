/** The Agent Client Protocol, version 1, and the methods that UAMP transports call ACP. */
import { acp } from '../requirement.ts'

export const acpAgent = acp('Agent Client Protocol 1', {
  'acp-1.initialize': ['Initialization', 'initialize answers with the version, what the agent takes, and who it is.'],
  'acp-1.version': [
    'Initialization, Version Negotiation',
    'Who asks for a version that is not spoken gets the newest that is, and no error.',
  ],
  'acp-1.authenticate': ['Authentication', 'authenticate takes the methods that initialize names, and no other.'],
  'acp-1.new': ['Session Setup', 'session/new gives a session of its own for an absolute folder.'],
  'acp-1.after-new': ['Session Setup', 'Nothing about a session is told before the answer to session/new.'],
  'acp-1.load': ['Session Setup, Loading Sessions', 'session/load tells the whole conversation, and only then answers.'],
  'acp-1.resume': ['Session Setup, Resuming Sessions', 'session/resume goes on with a session and tells nothing again.'],
  'acp-1.folders': [
    'Session Setup, Working Directory; Additional Workspace Roots',
    'The folders that load and resume name are those of the session from then on; what is left out is none.',
  ],
  'acp-1.list': ['Session List', 'session/list has the sessions of the user with folder and title, page by page, of one folder if asked.'],
  'acp-1.close': ['Session Setup, Closing Sessions', 'session/close stops what runs and lets go of the session; it can be loaded again.'],
  'acp-1.delete': ['Session Delete', 'session/delete removes a session for good; one that is not there is no error.'],
  'acp-1.unknown-session': ['Session Setup', 'What is said about a session that is not there is an error.'],
  'acp-1.prompt': ['Prompt Turn', 'A prompt is answered with updates, and then with why it stopped.'],
  'acp-1.updates-first': ['Prompt Turn', 'Every update of a prompt comes before its answer.'],
  'acp-1.thoughts': ['Prompt Turn', 'Thoughts are chunks of their own.'],
  'acp-1.content': ['Content', 'Text, images, audio, links and embedded files come to the agent, and go out.'],
  'acp-1.tool-calls': ['Tool Calls', 'A tool call is announced, told with its input, and ends with its output.'],
  'acp-1.diffs': ['Tool Calls, Content', 'A call that changes a file shows the change and where it is.'],
  'acp-1.permission': [
    'Tool Calls, Requesting Permission',
    'A tool that must be allowed waits for the user, and runs only if he allows it.',
  ],
  'acp-1.permission-always': ['Tool Calls, Requesting Permission', 'What is allowed for good is not asked again in the session.'],
  'acp-1.plan': ['Agent Plan', 'A plan is told with priority and status of every entry.'],
  'acp-1.commands': ['Slash Commands', 'The commands that the agent knows are told after the session is there.'],
  'acp-1.modes': ['Session Modes', 'The modes of the agent are told and set; a change by others is told.'],
  'acp-1.config': [
    'Session Config Options',
    'Several models are a choice of the category model; what is chosen is what the agent is asked with.',
  ],
  'acp-1.usage': ['Session Usage', 'What is in the window, and what the session costs, is told where the window is known.'],
  'acp-1.title': ['Session Info', 'A session gets a title.'],
  'acp-1.cancel': [
    'Prompt Turn, Cancellation',
    'session/cancel stops the agent, and the prompt is answered with cancelled; with nothing to stop it is nothing.',
  ],
  'acp-1.cancel-request': ['Cancellation', '$/cancel_request of a prompt stops it too.'],
  'acp-1.always-answered': ['Prompt Turn', 'A prompt is answered also when the agent fails.'],
  'acp-1.client-capabilities': ['File System; Terminals', 'Files and terminals of a client are asked for only if it has them.'],
  'acp-1.client-tools': ['File System; Terminals', 'With them an agent reads, writes and runs in the project of the user.'],
  'acp-1.mcp': ['Session Setup, MCP Servers', 'The tools of MCP servers that a client names are tools of the agent.'],
  'acp-1.extensibility': [
    'Extensibility',
    'An unknown request is -32601, an unknown notification nothing; nothing of ours stands at a root.',
  ],
  'acp-1.schema': ['Schema', 'What we send is what the schema of the protocol says.'],
  'acp-1.json-rpc': [
    'Transports; JSON-RPC 2.0',
    'What is no message, or a batch, is answered with the error for it, and the connection lives.',
  ],
  'acp-1.stdio': ['Transports, stdio', 'Messages are lines; nothing else is on standard output, and the end of the input ends the agent.'],
  'acp-1.http': [
    'Transports, Streamable HTTP',
    'initialize gives a connection; messages are posted to it, and what is told comes on its streams.',
  ],
  'acp-1.http-errors': ['Transports, Streamable HTTP', 'A missing or wrong header, media type or stream has the status for it.'],
  'acp-1.websocket': ['Transports, WebSocket', 'Each text frame is a message.'],
  'acp-1.owner': ['Transports, security', "Another's sessions and connections are not found."],
})

export const acpUamp = acp('UAMP transports', {
  'acp-uamp.initialize': ['ACP, Initialize', 'Without a number for a version, initialize answers as UAMP transports say.'],
  'acp-uamp.submit': ['ACP, Chat/Submit', 'prompt/submit is answered by prompt/started, prompt/progress and its result.'],
  'acp-uamp.tools': ['ACP, Tools', 'tools/list tells the tools of the agent, and tools/call runs one.'],
  'acp-uamp.payment-asked': [
    'Payment Handling, ACP',
    'A prompt that must be paid for fails with -32402 and what is accepted; one that brings a token is not asked.',
  ],
})

export const acpRemote = acp('Agent Client Protocol 1', {
  'acp-remote.prompt': [
    'Prompt Turn',
    'What the agent says, thinks, plans and does is told here, and a conversation goes on in its session.',
  ],
  'acp-remote.permission': ['Tool Calls, Requesting Permission', 'A question for permission is put to our client, over every protocol.'],
  'acp-remote.cancel': ['Prompt Turn, Cancellation', 'A cancel of ours is session/cancel there.'],
  'acp-remote.folder': [
    'File System',
    'Files are read and written in the folder that the operator names, and nowhere else, whatever links there are.',
  ],
  'acp-remote.tools': [
    'Session Setup, MCP Servers',
    'Tools of our client are those of an MCP server that its session gets, which nobody else can call.',
  ],
  'acp-remote.editor': ['File System', 'Files that it asks for are those of an editor that has files, if an editor asked it.'],
  'acp-remote.editor-terminal': [
    'Terminals',
    'Its terminals are those of an editor that has some, if an editor asked it; they are released when the prompt is over.',
  ],
  'acp-remote.terminal': ['Terminals', 'Commands begin in the folder, and end with the agent.'],
  'acp-remote.restart': ['Transports, stdio', 'An agent that has died is started again, and its conversations go on.'],
  'acp-remote.stop': ['Transports, stdio', 'When we stop, it is ended, with all that it started.'],
  'acp-remote.choices': ['Session Modes; Session Config Options', 'Its modes and models can be chosen by our clients.'],
})
