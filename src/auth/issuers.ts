/** Where the agents of a server are, below its URL. */
export const AGENTS_PATH = '/agents'

/** The issuer, and the audience, of one agent. */
export function agentUrl(ownUrl: string, agent: string): string {
  return `${ownUrl}${AGENTS_PATH}/${agent}`
}

/** The agent that a URL of this server is. */
export function agentAt(ownUrl: string, url: string): string | undefined {
  const path = `${ownUrl}${AGENTS_PATH}/`
  const name = url.startsWith(path) ? url.slice(path.length) : ''
  return name === '' || /[/?#]/.test(name) ? undefined : name
}

/** True for this server and for each of its agents: they sign with the same keys. */
export function isOwnIssuer(ownUrl: string | undefined, issuer: string): boolean {
  return ownUrl !== undefined && (issuer === ownUrl || agentAt(ownUrl, issuer) !== undefined)
}
