import type { AgentPort } from '../../src/core/ports/agent.ts'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { remoteAgUi } from '../../src/remotes/ag-ui/index.ts'
import { remoteAgent } from '../../src/remotes/agent/index.ts'
import { remoteCompletions } from '../../src/remotes/completions/index.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import type { RemoteAuth } from '../../src/upstream/outbound-auth.ts'

interface At {
  readonly name: string
  /** The server. */
  readonly url: string
  /** The agent there. */
  readonly of: string
  readonly auth?: RemoteAuth
}

/** Makes an agent `name` that stands for the agent `of` of the server at `url`, over each protocol. */
export const KINDS = {
  'events over HTTP': ({ url, of, ...rest }: At) => remoteEvents({ ...rest, url: `${url}/agents/${of}` }),
  'events over WebSocket': ({ url, of, ...rest }: At) => remoteEvents({ ...rest, url: `${url.replace('http', 'ws')}/agents/${of}` }),
  completions: ({ url, of, ...rest }: At) => remoteCompletions({ ...rest, url: `${url}/agents/${of}/v1`, model: of }),
  A2A: ({ url, of, ...rest }: At) => remoteA2a({ ...rest, url: `${url}/agents/${of}` }),
  'AG-UI': ({ url, of, ...rest }: At) => remoteAgUi({ ...rest, url: `${url}/agents/${of}/ag-ui` }),
  'what it finds': ({ url, of, ...rest }: At) => remoteAgent({ ...rest, url: `${url}/agents/${of}` }),
} satisfies Record<string, (at: At) => AgentPort>

export type Kind = keyof typeof KINDS
export const kinds = Object.keys(KINDS) as Kind[]
