/** OpenAI Responses, with what Open Responses and UAMP transports add to it. */
import { openAi } from '../requirement.ts'

export const responses = openAi('Responses', {
  'openai-responses.create': [
    'create',
    'POST /responses and /v1/responses answer with a response object that has every field of its type.',
  ],
  'openai-responses.echo': ['create', 'The response tells back the settings it was asked with, and the defaults of those it was not.'],
  'openai-responses.agent': ['UAMP transports', 'At the root `model` may name an agent; /agents/{name}/v1/responses reaches that agent.'],
  'openai-responses.stream-order': [
    'streaming events',
    'created, in_progress; each item is added, its parts are added, deltas, parts and items are done; then the end.',
  ],
  'openai-responses.sequence': [
    'streaming events',
    'sequence_number begins with 0 and grows by 1, and the SSE event is named as the type.',
  ],
  'openai-responses.text': ['streaming events', 'Text is output_text of a message item, with item_id, output_index and content_index.'],
  'openai-responses.refusal': ['streaming events', 'A refusal is a part of its own.'],
  'openai-responses.reasoning': ['reasoning', 'Thoughts are a reasoning item, a signature its encrypted_content.'],
  'openai-responses.function-call': [
    'function calling',
    'A call of a client function is a function_call item whose arguments are streamed.',
  ],
  'openai-responses.socket-unstored': [
    'WebSocket mode',
    'previous_response_id goes on from an unstored response of the same socket, and of no other.',
  ],
  'openai-responses.input-tokens': ['input tokens', 'POST /responses/input_tokens counts what a request would send, and asks nobody.'],
  'openai-responses.compact': [
    'compact',
    'POST /responses/compact gives what the user said and one compaction item, which stand for the conversation in a later input.',
  ],
  'openai-responses.hosted-tools': [
    'tools',
    'Tools of other types than function go to a provider that has them; for other agents they are refused with the name of the agent.',
  ],
  'openai-responses.server-tools': [
    'function calling',
    'What the agent runs itself is never a function_call: it is an mcp_call with its output.',
  ],
  'openai-responses.tool-loop': ['function calling', 'function_call_output with previous_response_id goes on in the same run; ids stay.'],
  'openai-responses.tool-missing': ['function calling', 'An output without its call, and a call without its output, are refused with 400.'],
  'openai-responses.tool-choice': ['function calling', 'tool_choice may forbid functions, force one, or allow some.'],
  'openai-responses.approval': ['remote tools', 'A question for approval is an mcp_approval_request, answered by mcp_approval_response.'],
  'openai-responses.media': [
    'output',
    'An image is an image_generation_call; other media stands beside a message, audio is streamed as audio events.',
  ],
  'openai-responses.structured': ['structured outputs', 'text.format reaches the agent: text, json_object, json_schema.'],
  'openai-responses.incomplete': ['streaming events', 'An answer cut by its length or a filter is incomplete, and says why.'],
  'openai-responses.failed': ['streaming events', 'A failure after the first word is response.failed; before it, an HTTP status.'],
  'openai-responses.usage': ['create', 'Usage has input, output and total tokens with their details.'],
  'openai-responses.input-text': ['input', 'Input is a text, or messages in the easy and the typed form, of all roles.'],
  'openai-responses.input-media': [
    'input',
    'Images, files and audio are content of a message; file ids are refused, as there are no uploads.',
  ],
  'openai-responses.input-items': ['input', 'Calls, outputs and reasoning of earlier answers may be sent again.'],
  'openai-responses.item-reference': ['input', 'A reference is resolved among what is stored; one to nothing is refused.'],
  'openai-responses.bad-input': ['errors', 'What is malformed gets 400 with the field in `param`, and harms nothing else.'],
  'openai-responses.unknown-fields': ['create', 'Unknown fields are ignored.'],
  'openai-responses.instructions': ['conversation state', 'Instructions are not carried over by previous_response_id.'],
  'openai-responses.previous': ['conversation state', 'previous_response_id goes on from any stored response, also an older one.'],
  'openai-responses.previous-missing': ['conversation state', 'One that is not there is 400 previous_response_not_found.'],
  'openai-responses.store-false': ['store', 'With store: false nothing is kept.'],
  'openai-responses.get': ['get', 'GET gives each stored response by its id, the same as it was told.'],
  'openai-responses.get-stream': ['get', 'GET with stream and starting_after gives the same events from there on, and follows what runs.'],
  'openai-responses.delete': ['delete', 'A deleted response is not found; what goes on from it stays whole.'],
  'openai-responses.items': ['input_items', 'Input items are listed in pages, in either order.'],
  'openai-responses.background': ['background', 'A background response is answered at once, and runs to its end without a reader.'],
  'openai-responses.cancel': ['cancel', 'A background response can be cancelled, more than once; a synchronous one can not.'],
  'openai-responses.disconnect': ['create', 'A client that leaves stops its response, unless it is in the background.'],
  'openai-responses.isolation': ['errors', 'What belongs to another is not found.'],
  'openai-responses.restart': ['conversation state', 'What is stored survives a restart, also a run that waits for its tools.'],
  'openai-responses.payment-asked': ['UAMP transports, payment', 'Payment is asked for with 402 before the first byte.'],
  'openai-responses.websocket': [
    'WebSocket',
    'response.create is answered with the events of the stream, several in sequence or in lanes.',
  ],
  'openai-responses.websocket-errors': ['WebSocket', 'What is refused is an error event, and the socket lives.'],
  'openai-responses.headers': ['errors', 'Answers carry x-request-id and the rate limit headers.'],
})
