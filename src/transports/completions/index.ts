import type { Host, HttpRoute, Transport } from '../../core/ports/transport.ts'
import { openAiRefusal } from '../../wire/openai/errors.ts'
import { complete } from './complete.ts'
import { KEEPER } from './kept.ts'
import { capabilities, Models } from './models.ts'
import { StoredCompletions } from './stored.ts'

/** OpenAI Chat Completions, for unchanged OpenAI clients. */
export function completions(): Transport {
  return {
    name: 'completions',
    routes: (host) => {
      const stored = new StoredCompletions(host)
      host.gateway.recoverWith(KEEPER, async () => undefined)
      return [...['/chat/completions', '/v1/chat/completions'].flatMap((path) => [post(host, path), ...kept(stored, path)])]
    },
    refusal: openAiRefusal,
    under: '/v1/',
  }
}

/** The routes by which clients find agents: the models of all of OpenAI's protocols, and the capabilities of any agent. */
export function catalog(): Transport[] {
  return [
    {
      name: 'models',
      serves: ['completions', 'responses', 'realtime'],
      routes: (host) => {
        const models = new Models(host)
        return ['/models', '/v1/models'].flatMap((path): HttpRoute[] => [
          { method: 'GET', path, access: 'request', action: 'read', handle: async (_, call) => models.list(call) },
          // A slash in an agent's name must be encoded; the server decodes it.
          { method: 'GET', path: `${path}/:id`, access: 'request', action: 'read', handle: async (_, call) => models.get(call) },
        ])
      },
      refusal: openAiRefusal,
    },
    {
      name: 'capabilities',
      serves: 'all',
      routes: (host) => [{ method: 'GET', path: '/capabilities', access: 'public', handle: async (_, call) => capabilities(host, call) }],
      refusal: openAiRefusal,
    },
  ]
}

/** The routes of completions with `store`. */
function kept(stored: StoredCompletions, path: string): HttpRoute[] {
  const one = `${path}/:id`
  return [
    { method: 'GET', path, access: 'request', action: 'read', handle: (_, call) => stored.list(call) },
    { method: 'GET', path: one, access: 'request', action: 'read', handle: (_, call) => stored.get(call) },
    { method: 'POST', path: one, access: 'request', body: 'text', handle: (_, call) => stored.update(call) },
    { method: 'DELETE', path: one, access: 'request', action: 'cancel', handle: (_, call) => stored.delete(call) },
    { method: 'GET', path: `${one}/messages`, access: 'request', action: 'read', handle: (_, call) => stored.messages(call) },
  ]
}

function post(host: Host, path: string): HttpRoute {
  return { method: 'POST', path, access: 'request', body: 'text', handle: (request, call) => complete(host, request, call) }
}
