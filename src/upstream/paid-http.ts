import type { HttpAnswer, HttpClient } from '../core/ports/http.ts'
import { jsonIn } from '../protocol/json.ts'
import { demandIn, paymentHeaders } from '../wire/demand.ts'
import type { Payer } from './payer.ts'

/** How often one request is paid: a payment may be refused, and another one taken. */
const TRIES = 3
/** How much of a refusal is read. */
const BYTES = 256 * 1024

/** Pays requests that are refused with 402 and a demand, and sends them again. */
export function paidHttp(http: HttpClient, payer: Payer): HttpClient {
  return {
    ...http,
    request: async (request) => {
      let answer = await http.request(request)
      for (let tries = 0; answer.status === 402 && tries < TRIES; tries++) {
        const refusal = await beginning(answer)
        const demand = demandIn(jsonIn(refusal.text), answer.headers as unknown as Headers)
        if (!demand) return { ...answer, body: refusal.again() }
        const extra = tries === 0 ? demand.extra : { error: { code: 'payment_failed' }, ...demand.extra }
        const payment = await payer.pay({ ...demand, extra })
        answer = await http.request({ ...request, headers: { ...request.headers, ...paymentHeaders(payment) } })
      }
      return answer
    },
  }
}

async function beginning({ body }: HttpAnswer): Promise<{ readonly text: string; again(): AsyncIterable<Uint8Array> }> {
  const chunks: Uint8Array[] = []
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    text += decoder.decode(chunk, { stream: true })
    if ((size += chunk.length) > BYTES) break
  }
  return {
    text,
    async *again() {
      yield* chunks
    },
  }
}
