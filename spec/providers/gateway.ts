/** A gateway without code: the config, `uamp init`, and what is offered without either. */
import { provider } from '../requirement.ts'

export const gateway = provider('Gateway config', {
  'gateway.models': ['agents', 'A config gives models of several providers with instructions, settings, tools, fallbacks and prices.'],
  'gateway.remotes': ['agents', 'A config gives agents of other servers, over events and completions.'],
  'gateway.modules': ['agents', 'A config that is a module has agents, paths and models as entries, which may hand over to each other.'],
  'gateway.mcp': [
    'mcp',
    'The tools of an MCP server are those of an agent; its program gets only the variables it is given, and ends with the server.',
  ],
  'gateway.limits': ['limits', 'A config sets the limits of the server.'],
  'gateway.detected': ['no config', 'Models that there is a key for in the environment are offered beside the demo; keys are not shown.'],
  'gateway.ollama': ['no config', 'A model of the Ollama on this machine is offered beside the demo; one elsewhere is not asked.'],
  'gateway.ollama-silent': ['no config', 'An Ollama that does not answer holds nothing up.'],
  'gateway.mistakes': [
    'mistakes',
    'What is wrong is told with its line and the fix before anything is served, and the process ends with 2.',
  ],
  'gateway.all-mistakes': ['mistakes', 'All mistakes are told at once, one a line.'],
  'gateway.env-file': ['.env', 'Variables come from `.env` beside the config or in the working folder, unless the environment has them.'],
  'gateway.reload': [
    'changes while it runs',
    'A changed agent is replaced without dropping sessions; a running answer is finished by the old one.',
  ],
  'gateway.announced': ['UAMP events §6.4', 'Open sessions are told what the new agent can do; what did not change is not announced.'],
  'gateway.reload-broken': ['changes while it runs', 'A broken config is reported with its line, and the agents stay as they were.'],
  'doctor.healthy': ['doctor', 'Each part that works has one line; nothing is changed, no secret is shown, and the exit code is 0.'],
  'doctor.wrong': ['doctor', 'Each part that does not work has one line with what to do, and the exit code is 1.'],
  'gateway.init': ['init', 'In an empty folder, with a key, init and serve give an agent, of every provider.'],
  'gateway.one-word': ['init', 'The same config works with another provider by another word.'],
  'gateway.asked': ['init', 'init asks for what is not given, and again where the answer is none.'],
  'gateway.careful': ['init', 'init writes nothing over that is there, unless it is told to.'],
  'gateway.package': ['init', 'Installed from its tarball, init and serve give an agent on every transport.'],
})

/** What every agent with a model owes, whichever provider it has. */
export const modelAgent = provider('Model agents', {
  'model.cost-cached': ['UAMP events §8.7', 'Cached tokens are counted at their own price, and at that of input where they have none.'],
  'model.cost': ['UAMP events §8.7', 'The end of a response has its cost in US dollars, summed over its steps.'],
  'model.bad-answer': ['failures', 'A page, an error under 200, half a chunk or an unknown model fails the response; the session goes on.'],
  'model.comments': ['failures', 'A stream of comments without an end is left when the turn is over, and its connection closed.'],
  'model.steps': ['budgets', 'A model that calls tools for ever is asked as often as it may be, and no more.'],
  'model.tools-harmless': ['budgets', 'A tool that throws, hangs, floods, or asks its own agent for ever ends as a failed or cut result.'],
  'model.arguments': ['tools', 'Arguments that are no JSON or do not fit, and tools that do not exist, go back to the model.'],
  'model.handoff-circle': ['handoffs', 'Agents that hand over in a circle are made to answer.'],
  'model.own-thoughts': ['thoughts', 'An agent with several models shows each only the thoughts that it signed itself.'],
  'model.isolated': ['tools', '1,000 turns with parallel tools on one agent, 50 at a time, do not see each other.'],
})

export const mcpClient = provider('MCP', {
  'mcp.tools': [
    'tools/call',
    'Tools are called over stdio and over streamable HTTP; text, media, resources and data come back, errors as errors.',
  ],
  'mcp.environment': ['stdio', 'A program inherits no secrets, and gets the variables it is given.'],
  'mcp.progress': ['progress and cancellation', 'A call tells its progress; a cancel and a time limit end it.'],
  'mcp.list-changed': ['tools/list_changed', 'Tools that a server gets later are there, under the prefix.'],
  'mcp.chosen': ['tools/list', 'Only the tools that were chosen are offered, with approval where it was asked for.'],
  'mcp.again': ['lifecycle', 'A program that died, and a session that was forgotten, are begun again by a later call.'],
  'mcp.bounds': ['tools/list', 'A list without an end is given up; a result of 10 MiB is cut or fails, and the next call works.'],
  'mcp.unreachable': ['lifecycle', 'A server that is not there, or is none, is named, with what it said.'],
  'mcp.reference': ['tools', 'The reference server gives its tools to a model.'],
})
