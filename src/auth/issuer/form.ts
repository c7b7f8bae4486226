import type { Call } from '../../core/ports/transport.ts'
import { refused } from './errors.ts'

/** A token request is a few short fields, with at most two tokens among them. Before anybody is known, it costs no more than this. */
export const FORM_BYTES = 16 * 1024

/** The fields of a request. One that is empty is not there (RFC 6749 §3.2). */
export type Form = ReadonlyMap<string, string>

export async function readForm(call: Call): Promise<Form> {
  const type = call.request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\b/i.test(type)) {
    throw refused('invalid_request', 'The body must be a form: application/x-www-form-urlencoded')
  }
  const form = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(await call.text())) {
    if (value === '') continue
    if (form.has(name)) throw refused('invalid_request', 'The form has a field twice')
    form.set(name, value)
  }
  return form
}

/** A field that must be there. */
export function required(form: Form, name: string): string {
  const value = form.get(name)
  if (value === undefined) throw refused('invalid_request', `The form needs the field ${name}`)
  return value
}
