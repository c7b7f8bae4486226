import type { Agents } from '../../core/ports/transport.ts'
import { oneLoopback } from '../../wire/address.ts'
import { AGENTS_PATH, agentAt, agentUrl } from '../issuers.ts'
import type { Client } from './clients.ts'
import { refused } from './errors.ts'
import type { Form } from './form.ts'

const URL_CHARS = 2048

export interface Here {
  readonly ownUrl: string
  /** The agent whose endpoint was asked. Undefined: that of the server. */
  readonly agent: string | undefined
  readonly agents: Agents
}

/** The audience of the token that a form asks for. AOAuth calls it `target`, RFC 8693 `audience`, and RFC 8707 `resource`. */
export function askedTarget(form: Form, here: Here): string | undefined {
  const given = new Set([form.get('target'), form.get('audience'), form.get('resource')].filter((each) => each !== undefined))
  const [target] = given
  // A client that does not know which of the names a server reads may send the same under several.
  if (given.size > 1) throw refused('invalid_request', 'Name one of target, audience and resource')
  return target === undefined ? undefined : audienceOf(target, here)
}

/** `@name` and `name` are agents here; anything else is a URL. */
function audienceOf(target: string, { ownUrl, agents }: Here): string {
  const name = target.startsWith('@') ? target.slice(1) : target
  if (agents.get(name) !== undefined) return agentUrl(ownUrl, name)
  const url = target.length <= URL_CHARS && URL.canParse(target) ? new URL(target) : undefined
  const isUsable = url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === ''
  if (!isUsable) throw refused('invalid_target', 'There is no agent of that name here, and it is not a URL')
  const href = url.href.replace(/\/+$/, '')
  const [own, asked] = [oneLoopback(ownUrl), oneLoopback(href)]
  const audience = asked === own || asked.startsWith(`${own}/`) ? ownUrl + asked.slice(own.length) : href
  if (audience === ownUrl) return ownUrl
  if (audience.startsWith(`${ownUrl}/`) && agents.get(agentAt(ownUrl, audience) ?? '') === undefined) {
    throw refused('invalid_target', 'There is no agent at that URL')
  }
  return audience
}

/** What a token is for if its client does not say it. */
export function defaultTarget({ name, targets }: Client, here: Here): string {
  const { ownUrl, agent } = here
  if (targets === undefined || targets.includes('*')) return agent === undefined ? ownUrl : agentUrl(ownUrl, agent)
  const [only, ...more] = targets
  if (only === undefined || more.length > 0 || only.endsWith('*')) {
    throw refused('invalid_target', `The client ${name} may ask for several targets, and must name one`)
  }
  return audienceOf(only, here)
}

/** True if a client may have tokens for this audience. A token for the server is one for all of its agents. */
export function mayReach({ targets }: Pick<Client, 'targets'>, audience: string, here: Here): boolean {
  const { ownUrl } = here
  if (targets === undefined) return audience === ownUrl || audience.startsWith(`${ownUrl}${AGENTS_PATH}/`)
  return targets.some((target) => {
    if (target === '*') return true
    if (target.endsWith('/*')) return audience.startsWith(target.slice(0, -1))
    const name = target.replace(/^@/, '')
    return audience === target.replace(/\/+$/, '') || audience === agentUrl(ownUrl, name)
  })
}
