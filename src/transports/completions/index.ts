import type { Host, HttpRoute, Transport } from '../../core/ports/transport.ts'
import { openAiRefusal } from '../../wire/openai/errors.ts'
import { complete } from './complete.ts'
import { KEEPER } from './kept.ts'
import { Models } from './models.ts'
import { StoredCompletions } from './stored.ts'

/** OpenAI Chat Completions, for unchanged OpenAI clients. */
export function completions(): Transport {
  return {
    name: 'completions',
    routes: (host) => {
      const models = new Models(host)
      const stored = new StoredCompletions(host)
      host.gateway.recoverWith(KEEPER, async () => undefined)
      return [
        ...['/chat/completions', '/v1/chat/completions'].flatMap((path) => [post(host, path), ...kept(stored, path)]),
        ...['/models', '/v1/models'].flatMap((path): HttpRoute[] => [
          { method: 'GET', path, access: 'request', handle: async (_, call) => models.list(call) },
          // A slash in an agent's name must be encoded; the server decodes it.
          { method: 'GET', path: `${path}/:id`, access: 'request', handle: async (_, call) => models.get(call) },
        ]),
        { method: 'GET', path: '/capabilities', access: 'public', handle: async (_, call) => models.capabilities(call) },
      ]
    },
    refusal: openAiRefusal,
    under: '/v1/',
  }
}

/** The routes of completions with `store`. */
function kept(stored: StoredCompletions, path: string): HttpRoute[] {
  const one = `${path}/:id`
  return [
    { method: 'GET', path, access: 'request', handle: (_, call) => stored.list(call) },
    { method: 'GET', path: one, access: 'request', handle: (_, call) => stored.get(call) },
    { method: 'POST', path: one, access: 'request', body: 'text', handle: (_, call) => stored.update(call) },
    { method: 'DELETE', path: one, access: 'request', handle: (_, call) => stored.delete(call) },
    { method: 'GET', path: `${one}/messages`, access: 'request', handle: (_, call) => stored.messages(call) },
  ]
}

function post(host: Host, path: string): HttpRoute {
  return { method: 'POST', path, access: 'request', body: 'text', handle: (request, call) => complete(host, request, call) }
}
