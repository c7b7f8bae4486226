/** How each binding says no over HTTP, also to what is refused before it reaches a method. */
import type { RefusalOptions } from '../../core/ports/transport.ts'
import type { UampError } from '../../protocol/errors.ts'
import { refusalResponse } from '../../wire/refusal.ts'
import { told, type Told } from './errors.ts'
import { errorDetails } from './v1/errors.ts'

export type Refusal = (error: UampError, options?: RefusalOptions) => Response

/** A refusal whose body is made of what is told of the error. */
export function refusalWith(contentType: string, body: (told: Told, status: number) => object): Refusal {
  return (error, { status, headers } = {}) => {
    const what = told(error)
    const given = status ?? what.status
    return refusalResponse(error, JSON.stringify(body(what, given)), {
      status: given,
      headers: { 'content-type': contentType, ...headers },
    })
  }
}

/** JSON-RPC: which request it was is not known. */
export const rpcRefusal = refusalWith('application/json', (what) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code: what.code, message: what.message, data: errorDetails(what) },
}))

/** REST of 1.0: `google.rpc.Status` (A2A 1.0 §11.6). */
export const restRefusal = refusalWith('application/a2a+json', restError)

/** The same in a stream. */
export function restErrorText(error: UampError): string {
  const what = told(error)
  return JSON.stringify(restError(what, what.status))
}

function restError(what: Told, status: number): object {
  return { error: { code: status, status: what.rpc, message: what.message, details: errorDetails(what) } }
}
