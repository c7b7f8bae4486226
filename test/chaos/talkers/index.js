// @ts-check
import { A2aTalker } from './a2a.js'
import { Rpc } from '../../support/killed/rpc.js'
import { AcpTalker } from './acp.js'
import { AgUiTalker } from './ag-ui.js'
import { ClientTalker } from './client.js'
import { CompletionsTalker } from './completions.js'
import { EventsTalker } from './events.js'
import { overSocket, overSse } from '../../support/killed/events-wire.js'
import { OmniaTalker } from './omnia.js'
import { ResponsesTalker } from './responses.js'

/** @typedef {import('../talker.js').TalkerOptions} TalkerOptions */

/** Everything that keeps conversations, by the name that `--only` takes. @type {Readonly<Record<string, (options: TalkerOptions) => import('../talker.js').Talker>>} */
export const TALKERS = {
  'events-socket': (options) => new EventsTalker(options, overSocket),
  'events-sse': (options) => new EventsTalker(options, overSse),
  'client-socket': (options) => new ClientTalker(options, 'websocket'),
  'client-sse': (options) => new ClientTalker(options, 'sse'),
  responses: (options) => new ResponsesTalker(options),
  'responses-socket': (options) => new ResponsesTalker(options, 'socket'),
  completions: (options) => new CompletionsTalker(options),
  a2a: (options) => new A2aTalker(options),
  'ag-ui': (options) => new AgUiTalker(options),
  'acp-socket': (options) => new AcpTalker(options, Rpc.overSocket),
  'acp-http': (options) => new AcpTalker(options, Rpc.overHttp),
  omnia: (options) => new OmniaTalker(options),
}
