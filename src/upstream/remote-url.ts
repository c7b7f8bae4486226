/** Where a protocol is below the address of its server or agent. */
const TAILS = /\/(v1|ws|uamp|acp|ag-ui|realtime|events|\.well-known\/[\w.-]+|chat\/completions)$/

/** The URL of the agent or the server that a remote agent is at: what a token for it names as its audience. */
export function audienceOf(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  let path = pathname.replace(/\/+$/, '')
  for (let shorter = path.replace(TAILS, ''); shorter !== path; shorter = path.replace(TAILS, '')) path = shorter
  return `${protocol.replace(/^ws/, 'http')}//${host}${path}`
}

/** The server of an agent at `https://host/prefix/agents/name`; otherwise the URL itself. */
export function serverOf(audience: string): string {
  return audience.replace(/\/agents\/[^/]+$/, '')
}

/** Scheme, host and port. A WebSocket counts as the HTTP that it begins with. */
export function originOf(url: string): string {
  return new URL(url.replace(/^ws(?=s?:)/i, 'http')).origin
}
