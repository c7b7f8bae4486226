import type { Host, HttpRoute, Transport } from '../../core/ports/transport.ts'
import { openAiRefusal } from '../../wire/openai/errors.ts'
import { complete } from './complete.ts'
import { Models } from './models.ts'

/** OpenAI Chat Completions, for unchanged OpenAI clients. */
export function completions(): Transport {
  return {
    name: 'completions',
    routes: (host) => {
      const models = new Models(host)
      return [
        post(host, '/chat/completions'),
        post(host, '/v1/chat/completions'),
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

function post(host: Host, path: string): HttpRoute {
  return { method: 'POST', path, access: 'request', body: 'text', handle: (request, call) => complete(host, request, call) }
}
