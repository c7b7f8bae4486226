import type { RefusalOptions } from '../core/ports/transport.ts'
import type { UampError } from '../protocol/errors.ts'
import { refusalResponse } from '../wire/refusal.ts'

/** Every error of this server looks like this: `{ "error": { "code", "message", "details"? } }`. */
export function errorResponse(error: UampError, options?: RefusalOptions): Response {
  return refusalResponse(error, JSON.stringify({ error: error.toBody() }), options)
}
