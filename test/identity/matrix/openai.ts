/** What clients of OpenAI's protocols can do by requests. */
import type { Operation } from './operation.ts'
import { AGENT } from './rule.ts'
import type { Request } from './world.ts'

const get = (path: string): Request => ({ method: 'GET', path })
const remove = (path: string): Request => ({ method: 'DELETE', path })
const post = (path: string, body?: unknown): Request => ({ method: 'POST', path, body })
const HELLO = [{ role: 'user', content: 'Hello' }]
const FORM = { form: 'openai' } as const

function completions(path: string): readonly Operation[] {
  const owned = { ...FORM, thing: 'completion' } as const
  return [
    { ...FORM, route: `POST ${path}`, asks: 'call', request: () => post(path, { model: AGENT, messages: HELLO }) },
    {
      ...FORM,
      route: `POST ${path}`,
      what: 'as a stream',
      asks: 'call',
      request: () => post(path, { model: AGENT, messages: HELLO, stream: true }),
    },
    { ...FORM, route: `GET ${path}`, asks: 'read', request: () => get(path) },
    { ...owned, route: `GET ${path}/:id`, asks: 'read', request: (id) => get(`${path}/${id}`) },
    { ...owned, route: `POST ${path}/:id`, asks: 'call', request: (id) => post(`${path}/${id}`, { metadata: { a: 'b' } }) },
    { ...owned, route: `DELETE ${path}/:id`, asks: 'cancel', once: true, request: (id) => remove(`${path}/${id}`) },
    { ...owned, route: `GET ${path}/:id/messages`, asks: 'read', request: (id) => get(`${path}/${id}/messages`) },
  ]
}

function responses(path: string): readonly Operation[] {
  const owned = { ...FORM, thing: 'response' } as const
  const asked = { model: AGENT, input: 'Hello' }
  return [
    { ...FORM, route: `POST ${path}`, asks: 'call', request: () => post(path, asked) },
    { ...FORM, route: `POST ${path}`, what: 'as a stream', asks: 'call', request: () => post(path, { ...asked, stream: true }) },
    { ...FORM, route: `POST ${path}/input_tokens`, asks: 'call', request: () => post(`${path}/input_tokens`, asked) },
    { ...FORM, route: `POST ${path}/compact`, asks: 'call', request: () => post(`${path}/compact`, asked) },
    { ...owned, route: `GET ${path}/:id`, asks: 'read', request: (id) => get(`${path}/${id}`) },
    { ...owned, route: `GET ${path}/:id`, what: 'as a stream', asks: 'read', request: (id) => get(`${path}/${id}?stream=true`) },
    { ...owned, route: `DELETE ${path}/:id`, asks: 'cancel', once: true, request: (id) => remove(`${path}/${id}`) },
    { ...owned, route: `POST ${path}/:id/cancel`, asks: 'cancel', request: (id) => post(`${path}/${id}/cancel`) },
    { ...owned, route: `GET ${path}/:id/input_items`, asks: 'read', request: (id) => get(`${path}/${id}/input_items`) },
  ]
}

function models(path: string): readonly Operation[] {
  return [
    { ...FORM, route: `GET ${path}`, asks: 'read', request: () => get(path) },
    { ...FORM, route: `GET ${path}/:id`, asks: 'read', request: () => get(`${path}/${AGENT}`) },
  ]
}

export const OPENAI: Readonly<Record<string, readonly Operation[]>> = {
  'Chat Completions': ['/chat/completions', '/v1/chat/completions'].flatMap(completions),
  Responses: ['/responses', '/v1/responses'].flatMap(responses),
  'the list of agents': [
    ...['/models', '/v1/models'].flatMap(models),
    { ...FORM, route: 'GET /capabilities', asks: 'public', request: () => get('/capabilities') },
  ],
}
