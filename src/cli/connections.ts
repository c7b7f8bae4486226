import type { ConnectEntry } from '../config/schema.ts'
import { UampError } from '../protocol/errors.ts'
import { addressOf } from '../serve/connect/address.ts'
import { secretOf } from './tokens.ts'

/** A host, and the agents that are offered through it. */
export interface Connection {
  readonly url: string
  readonly agents: readonly string[]
  readonly token: () => string
}

/** The hosts that a config names. A token is read whenever it is needed, so that a new one in its file counts. */
export function connectionsOf(
  entries: readonly ConnectEntry[],
  { env, agents }: { readonly env: NodeJS.ProcessEnv; readonly agents: readonly string[] },
): readonly Connection[] {
  return entries.map(({ url, token, tokenEnv, tokenFile, agents: chosen = agents }) => {
    const unknown = chosen.find((name) => !agents.includes(name))
    if (unknown !== undefined) throw new UampError('invalid_request', `"connect" names the agent "${unknown}", which is not there`)
    if (tokenEnv !== undefined && !env[tokenEnv])
      throw new UampError('invalid_request', `The variable ${tokenEnv} is not set: "connect" needs it`)
    const secret = (): string => (tokenEnv === undefined ? secretOf(present(token, tokenFile), env) : env[tokenEnv]) ?? ''
    secret()
    return { url: addressOf(url), agents: chosen, token: secret }
  })
}

function present(token: string | undefined, tokenFile: string | undefined) {
  return { ...(token !== undefined && { token }), ...(tokenFile !== undefined && { tokenFile }) }
}
