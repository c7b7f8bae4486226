import { jsonAnswer } from '../../core/edge/json-answer.ts'
import { chooseAgent } from '../../core/edge/asked.ts'
import { tokensIn, tokensOfConfig } from '../../core/basics/tokens.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { turnsBackFrom } from '../../core/reading/conversation.ts'
import { outputMessages } from '../../core/reading/output.ts'
import type { Message } from '../../protocol/message.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { parseBody } from '../../wire/parse.ts'
import { toMessages } from './input.ts'
import { toAsked } from './request.ts'
import { CreateRequest } from './schema.ts'
import { previousOf } from './start.ts'
import { withReferences } from './stored-items.ts'

/** `POST /responses/input_tokens`: an estimate of what a request would send to a model, which is not asked. */
export async function inputTokens(host: Host, call: KnownCall): Promise<Response | Streamed> {
  const { gateway } = host
  const { principal } = call
  const body = parseBody(CreateRequest, await call.text())
  const asked = toAsked({ ...body, input: body.input ?? [] })
  // Whoever may not ask this agent need not know what it would cost.
  if (asked.model !== undefined) chooseAgent(host, call, asked.model)
  const previous = await previousOf(host, asked, principal)
  const sum = (messages: readonly Message[]): number => messages.reduce((tokens, message) => tokens + tokensIn(message), 0)
  let input_tokens = tokensOfConfig(asked.config) + sum(toMessages(await withReferences(gateway, asked.input, principal)))
  if (previous) {
    for await (const { input, output } of turnsBackFrom(gateway, previous, principal)) {
      input_tokens += sum(input) + sum(outputMessages(output))
    }
  }
  const headers = openAiHeaders(call.quota)
  return jsonAnswer({ object: 'response.input_tokens', input_tokens }, { headers, gateway, principal })
}
