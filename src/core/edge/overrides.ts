import type { EventOf } from '../../protocol/events.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

type Changes = { [K in keyof SessionConfig]?: SessionConfig[K] | undefined }

/** A configuration with some fields replaced. Undefined fields replace nothing. */
export function withOverrides(config: SessionConfig, changes: Changes): SessionConfig {
  const isWhole = !Object.values(changes).includes(undefined)
  const given = isWhole ? changes : Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
  return { ...config, ...given } as SessionConfig
}

/** The configuration of a response (UAMP events §5.12); undefined if its `response.create` changes nothing. */
export function responseConfig(config: SessionConfig, create: EventOf<'response.create'>): SessionConfig | undefined {
  const { response, response_format } = create
  if (response_format !== undefined) return withOverrides(config, { ...response, response_format })
  return response && withOverrides(config, response)
}
