import type { EventOf } from '../../protocol/events.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** A configuration with some fields replaced. Undefined fields replace nothing. */
export function withOverrides(
  config: SessionConfig,
  changes: { [K in keyof SessionConfig]?: SessionConfig[K] | undefined },
): SessionConfig {
  const isWhole = !Object.values(changes).includes(undefined)
  const given = isWhole ? changes : Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
  return { ...config, ...given } as SessionConfig
}

/** The configuration of a response (UAMP events §5.12); undefined if its `response.create` changes nothing. */
export function responseConfig(
  config: SessionConfig,
  { response, response_format }: EventOf<'response.create'>,
): SessionConfig | undefined {
  if (response === undefined && response_format === undefined) return undefined
  return withOverrides(config, response_format === undefined ? (response ?? {}) : { ...response, response_format })
}
