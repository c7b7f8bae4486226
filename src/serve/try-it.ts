export interface Served {
  /** The address for clients on this machine. */
  readonly url: string
  readonly agents: readonly string[]
  /** The agent at `/`, if there is one. */
  readonly root: string | undefined
  /** The names of the tokens. */
  readonly tokens: readonly string[]
  readonly anonymous: boolean
}

/** A line for a shell that talks to the first agent. */
export function curlLine({ url, agents, root, tokens, anonymous }: Served): string {
  const agent = root ?? agents[0] ?? ''
  const text = agent === 'demo' ? '/count 10 100' : 'Hello'
  const path = root === undefined ? `/agents/${agent}/events` : '/events'
  const token = anonymous ? '' : ` -H 'authorization: Bearer <secret of ${tokens[0]}>'`
  const events = [{ type: 'session.create' }, { type: 'input.text', text }, { type: 'response.create' }]
  return `curl -N ${url.replace('http://', '')}${path}${token} -H 'accept: text/event-stream' -d '${JSON.stringify(events)}'`
}

/** What `serve` prints, so that whoever runs a program for the first time knows where to go. */
export function greeting(served: Served): string {
  const { agents, url } = served
  if (agents.length === 0) return `Serving at ${url}\n`
  return `Serving ${agents.join(', ')} at ${url}\nTry it: ${curlLine(served)}\n`
}
