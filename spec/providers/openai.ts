/** OpenAI's two APIs, as a client of them. */
import { provider } from '../requirement.ts'

export const openaiProvider = provider('OpenAI Responses', {
  'openai-model.stateless': ['create', 'Nothing is stored: store is false, and the whole conversation goes with every request.'],
  'openai-model.instructions': [
    'instructions',
    'Instructions go as such, and system messages as messages of the developer, in their place.',
  ],
  'openai-model.media': [
    'input items',
    'Images and files go as parts, by base64 or URL; files of text as text; what it cannot take is named in words.',
  ],
  'openai-model.tool-pairs': [
    'function calling',
    'Every call has its output, also one that was never answered, and no output is without its call.',
  ],
  'openai-model.tool-output': ['function calling', 'An output carries text, images and files.'],
  'openai-model.tools': [
    'function calling',
    'Functions are strict only where it was asked for; a choice goes only with tools to choose from.',
  ],
  'openai-model.reasoning-kept': ['reasoning', 'Encrypted reasoning comes back with the conversation, in its place before what it led to.'],
  'openai-model.reasoning-foreign': ['reasoning', 'Thoughts that OpenAI did not encrypt, or that led to nothing, are not sent.'],
  'openai-model.reasoning-settings': [
    'reasoning',
    'Models that think are asked for a summary and get no sampling settings; others are not asked.',
  ],
  'openai-model.format': ['UAMP events §8.3', 'A response format is passed on natively.'],
  'openai-model.settings': [
    'create',
    'Settings that clients of OpenAI’s protocols send, in the words of either, are sent; unknown ones are not.',
  ],
  'openai-model.text': ['streaming events', 'Text is told as it comes, wherever the stream was cut; unknown events are passed over.'],
  'openai-model.thoughts': ['streaming events', 'Summaries are told as they come, their parts apart, and what was encrypted after them.'],
  'openai-model.arguments': [
    'streaming events',
    'The arguments of parallel calls are told as they come, under the id and name of each call.',
  ],
  'openai-model.refusal': ['streaming events', 'A refusal is told as one.'],
  'openai-model.stop': ['streaming events', 'An incomplete answer says why: length or content_filter.'],
  'openai-model.usage': ['UAMP events §8.7', 'input_tokens includes what was read from the cache, cached_tokens is what was read.'],
  'openai-model.errors': [
    'errors',
    'A failure by status, in the stream, or under a good status is an error with OpenAI’s words, and no key.',
  ],
  'openai-model.cut': ['streaming events', 'A stream that ends before the answer does is an error, after what it said.'],
  'openai-model.cancel': ['streaming', 'A cancel closes the connection.'],
  'openai-model.whole': ['create', 'An answer in one piece is understood too.'],
  'openai-model.capabilities': [
    'UAMP events §9',
    'What a model can do is told by its name, also that of its versions and of fine-tuned ones.',
  ],
})

export const openaiCompatible = provider('OpenAI Chat Completions', {
  'compatible.system': ['messages', 'Instructions and the first system messages are one, at the beginning.'],
  'compatible.media': [
    'messages',
    'Images, audio and files go as parts where the server takes them; files of text as text; the rest is named in words.',
  ],
  'compatible.tool-pairs': [
    'messages',
    'Results follow their calls at once; unanswered calls get one; results without a call are left out.',
  ],
  'compatible.tool-media': ['messages', 'What a tool gave beside its text follows its results as a message of the user.'],
  'compatible.tool-ids': [
    'tool calls',
    'Every call of a conversation has an id of its own, also where the server gives none, or the same again.',
  ],
  'compatible.arguments': [
    'tool calls',
    'Arguments of parallel calls are told as they come; whole ones, without an index or as objects, are understood.',
  ],
  'compatible.invalid-arguments': ['tool calls', 'Arguments that are no JSON do not fail the requests after them.'],
  'compatible.reasoning-content': ['UAMP events §6.13', 'reasoning_content and reasoning are thoughts.'],
  'compatible.reasoning-back': ['DeepSeek thinking mode', 'Thoughts go back on messages with calls, in the field in which they came.'],
  'compatible.reasoning-details': ['OpenRouter reasoning', 'reasoning_details go back as they came, put together from their pieces.'],
  'compatible.think-tags': ['reasoning', 'Text between think tags at the very beginning is a thought, wherever the tags are cut.'],
  'compatible.affinity': [
    'UAMP events §8.7',
    'Requests of one session to Fireworks carry the same hash of its id, or of what the client says belongs together.',
  ],
  'compatible.deepseek': ['UAMP events §8.7', 'DeepSeek’s cache hits and misses are counted; effort none turns thinking off.'],
  'compatible.no-key': ['authentication', 'Without a key there is no authorization header.'],
  'compatible.format': ['UAMP events §8.3', 'A response format is passed on natively, or in words where a server has no schemas.'],
  'compatible.settings': ['create', 'Settings under its own name win over OpenAI’s; unknown ones are not sent.'],
  'compatible.text': ['streaming', 'Text is told as it comes, wherever the stream was cut, with comments and CRLF in between.'],
  'compatible.refusal': ['streaming', 'A refusal is told as one.'],
  'compatible.stop': ['finish_reason', 'length and content_filter are told; an error as a finish is one.'],
  'compatible.usage': ['UAMP events §8.7', 'The usage is told once, with what was cached and what was thought.'],
  'compatible.audio': ['audio', 'Audio is told as it comes, with its transcript, and then the whole of it.'],
  'compatible.images': ['OpenRouter images', 'Images of the answer are content items.'],
  'compatible.errors': ['errors', 'A failure by status, in the stream, in a choice, as a page or under a good status is an error.'],
  'compatible.cut': ['streaming', 'A stream that ends without a finish reason or [DONE] is an error, after what it said.'],
  'compatible.retry': ['errors', 'What may pass is tried again before the first chunk, and never after it.'],
  'compatible.cancel': ['streaming', 'A cancel closes the connection; an answer that was read leaves it open for the next.'],
  'compatible.whole': ['create', 'An answer in one piece is understood too.'],
  'compatible.silent': ['create', 'Where nobody sees an answer before its end, it is asked for in one piece, and is the same.'],
  'compatible.capabilities': ['models', 'What a model can do is told by what is known of it, and by the server’s own list.'],
})
