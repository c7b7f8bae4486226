/** What a server says to others in the name of its agents: how far a request has come, who asks, and in which protocol. */
import { identity } from '../requirement.ts'

export const hops = identity('Hops', {
  'hops.limit': ['limit', 'A request that more servers than the limit have passed on is refused, in the form of its protocol.'],
  'hops.highest': [
    'fields and headers',
    'Of a header and a field the higher one counts; what is no count counts as none, and lowers nothing.',
  ],
  'hops.carried': ['outbound calls', 'Every call to a remote agent, a model, an MCP server or an ACP program says one hop more.'],
  'hops.circle': ['circles', 'Servers that call each other in a circle, over any mix of protocols, come to an end with a clear error.'],
})

export const outbound = identity('Outbound tokens', {
  'outbound.self': [
    'tokens of this server',
    'A remote agent gets a token that names this server, the agent, and the remote agent as its audience.',
  ],
  'outbound.caller': [
    'RFC 8693 §4.1',
    'In the name of a caller the token has the caller as its subject and the agent as the actor, and does not outlive the caller’s own.',
  ],
  'outbound.client': [
    'RFC 6749 §4.4, RFC 7523',
    'As a client of the other server, by a secret or a private key, an agent gets tokens from its token endpoint.',
  ],
  'outbound.discovery': [
    'RFC 8414 §3',
    'The token endpoint is found by the metadata of the agent, its server or its host; metadata of another issuer, or that leads to another host, is refused.',
  ],
  'outbound.exchange': ['RFC 8693 §2.1', 'A caller’s token of this server is exchanged for one of the other server.'],
  'outbound.cached': ['caching', 'A token is fetched once for many calls, replaced before it ends, and once more after a 401.'],
  'outbound.bound': [
    'third parties',
    'A token goes to the origin that it is for; the caller’s own token, and a client’s secret, go nowhere else.',
  ],
  'outbound.refreshed': ['UAMP events §5.2', 'A turn that takes longer than its token lives is given another one.'],
  'outbound.rotation': ['keys', 'Two servers with different keys call each other while keys rotate, and nothing fails.'],
})

export const discovery = identity('Discovery of remote agents', {
  'discovery.best': [
    'order',
    'Of UAMP events, A2A, AG-UI and Chat Completions, the first one that the other side speaks is used, and remembered.',
  ],
  'discovery.changed': ['changes', 'When the other side no longer speaks it, another one is found, and the turn goes on.'],
  'discovery.nothing': ['errors', 'A server that speaks nothing, refuses, or cannot be reached is a clear error.'],
  'discovery.origin': ['third parties', 'What the other side names on another host is refused.'],
})
