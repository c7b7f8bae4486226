import type { AgentPort } from '../../../core/ports/agent.ts'
import type { Call, Host, KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Cards } from '../binding.ts'
import { a2aError } from '../errors.ts'
import { buildCard, extensionsOf } from './build.ts'
import { hybrid, seedCard } from './hybrid.ts'
import type { AgentCard } from './model.ts'
import type { CardOptions } from './options.ts'
import { isUnchanged, ServedCards } from './served.ts'
import { cardSigner } from './sign.ts'

export type { AgentCard, AgentSkill } from './model.ts'
export type { CardAddition } from './options.ts'
export type { SigningKey } from './sign.ts'

const MAX_AGE_SECONDS = 300

/** Who an agent is and how to talk to it, for those who have only its address. */
export function createCards(host: Host, options: CardOptions = {}): Cards {
  const { card: usual = 'hybrid', extendedCard, signingKeys = [], maxAgeSeconds = MAX_AGE_SECONDS } = options
  const signer = signingKeys.length > 0 ? cardSigner(signingKeys) : undefined
  // Else a card would be signed with whatever `Host` a request names, and be a good one for that place.
  const sign = host.ownUrl === undefined ? undefined : signer
  if (signer && !sign) host.log('warn', 'Agent cards are not signed: set publicUrl')
  const served = new ServedCards(host.now)

  async function publicCard(call: Call, agent: AgentPort): Promise<AgentCard> {
    const base = host.publicUrl(call.request) + (call.root ? '' : `/agents/${agent.name}`)
    // What an agent elsewhere says of itself may repeat what it was shown.
    return host.secrets.value(
      buildCard(agent, { base, pushNotifications: host.outbound !== undefined, bearer: await bearerOf(call), options }),
    )
  }

  const signed = async (card: AgentCard): Promise<AgentCard> => (sign ? { ...card, signatures: await sign(card) } : card)
  const isPure = (call: Call): boolean => asksForOne(call) ?? usual === '1.0'

  return {
    async respond(call) {
      const agent = agentOf(host, call)
      const card = await publicCard(call, agent)
      const old = new URL(call.request.url).pathname.endsWith('/agent.json')
      const shape = (of: AgentCard): object => {
        // Who looks for `agent.json` is not of 1.0, whatever the setting, unless he says so.
        if (old ? asksForOne(call) : isPure(call)) return of
        return old ? seedCard(of, agent) : hybrid(of)
      }
      const sent = await served.of(shape(card), async () => shape(await signed(card)))
      const headers = {
        etag: sent.etag,
        'last-modified': sent.lastModified,
        'cache-control': `public, max-age=${maxAgeSeconds}`,
        vary: 'A2A-Version, Origin',
      }
      if (isUnchanged(call.request.headers, sent)) return new Response(null, { status: 304, headers })
      return new Response(sent.text, { headers: { 'content-type': 'application/json', ...headers } })
    },

    async extended(call, generation) {
      const pure = generation === '1.0' || isPure(call)
      const agent = agentOf(host, call)
      if (extendedCard === undefined) {
        // §3.3.4: the card does not offer it. 0.3 has a name of its own for that.
        const reason = pure ? 'UNSUPPORTED_OPERATION' : 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'
        throw a2aError(reason, 'This agent has no extended card')
      }
      if (await isAnybody(call)) throw new UampError('unauthorized', 'The extended card is for callers who show who they are')
      const card = await publicCard(call, agent)
      const added = typeof extendedCard === 'function' ? await extendedCard(call, card) : extendedCard
      if (!added) throw a2aError('EXTENDED_AGENT_CARD_NOT_CONFIGURED', 'There is no extended card for this caller')
      const { supportedInterfaces } = card
      const whole = await signed({ ...card, ...added, supportedInterfaces, skills: [...card.skills, ...(added.skills ?? [])] })
      return pure ? whole : hybrid(whole)
    },

    extensions: (call) => extensionsOf(agentOf(host, call)),
  }
}

function agentOf(host: Host, { agent: name }: Call): AgentPort {
  const agent = name === undefined ? undefined : host.agents.get(name)
  if (!agent) throw new UampError('agent_offline', 'There are several agents here: ask for /agents/{name}/.well-known/agent-card.json')
  return agent
}

/** Whether the version that the client speaks is of 1.x. It is in the header, else in the query: A2A 1.0 §3.6. Undefined: it does not say. */
function asksForOne({ request }: Call): boolean | undefined {
  const asked = request.headers.get('a2a-version') ?? new URL(request.url).searchParams.get('A2A-Version')
  return asked === null || asked === '' ? undefined : /^1(?:\.|$)/.test(asked)
}

async function bearerOf({ access }: Call): Promise<'none' | 'optional' | 'required'> {
  if (!access.schemes || access.schemes.length === 0) return 'none'
  return (await access.authenticate({ headers: new Headers() })) === undefined ? 'required' : 'optional'
}

/** Whether the caller is no more than somebody who shows nothing at all. */
async function isAnybody({ access, principal }: KnownCall): Promise<boolean> {
  const anybody = await access.authenticate({ headers: new Headers() })
  return anybody !== undefined && anybody.tenant === principal.tenant && anybody.id === principal.id
}
