/** Anthropic's Messages API, as a client of it. */
import { provider } from '../requirement.ts'

export const anthropic = provider('Anthropic Messages', {
  'anthropic.version': ['versioning', 'Every request names a version; one without sampling settings the newest.'],
  'anthropic.sampling': [
    'versioning',
    'Sampling settings go to models that take them, under the version that has them, and are left out for others.',
  ],
  'anthropic.max-tokens': ['max_tokens', 'Every request has max_tokens, and it leaves room beside a budget to think with.'],
  'anthropic.system': ['system', 'Instructions and system messages are the system text, not messages.'],
  'anthropic.roles': ['messages', 'Messages have two roles in turn, and the user begins.'],
  'anthropic.media': ['content blocks', 'Images and PDFs go as blocks, by base64 or URL; what it cannot take is named in words.'],
  'anthropic.tool-pairs': ['tool use', 'Every tool_use has its tool_result in the next message, and results stand first there.'],
  'anthropic.tool-result-media': ['tool use', 'A result carries text, images, and whether it failed.'],
  'anthropic.tool-input': ['tool use', 'The input of a call is an object, also where the model wrote something else.'],
  'anthropic.tool-choice': [
    'tool_choice',
    'Choices of OpenAI’s clients become auto, any, tool or none, and parallel calls can be turned off.',
  ],
  'anthropic.thinking-kept': ['extended thinking', 'Signatures and redacted thoughts go back with the results, as they came.'],
  'anthropic.thinking-foreign': ['extended thinking', 'Thoughts without a signature of its own are not sent.'],
  'anthropic.thinking-settings': ['adaptive thinking', 'An effort becomes adaptive thinking or a budget, as the model wants it.'],
  'anthropic.thinking-forced': ['extended thinking', 'A forced call, or thoughts that were lost, take precedence over thinking.'],
  'anthropic.cache': ['prompt caching', 'A marker for the whole request is set, or those on parts that were asked for, or none.'],
  'anthropic.schema': [
    'structured outputs',
    'A JSON Schema goes as output_config.format, with closed objects and without keywords that are refused.',
  ],
  'anthropic.schema-tool': ['UAMP events §8.3', 'A model without structured outputs is made to call a tool, whose input is the answer.'],
  'anthropic.settings': ['messages', 'Settings under its own name win; those that are unknown are not sent.'],
  'anthropic.text': [
    'streaming',
    'Text is told as it comes, wherever the stream was cut; pings, comments and unknown events are passed over.',
  ],
  'anthropic.interleaved': [
    'streaming',
    'The index of a delta names its block: blocks that overlap stay apart, and are told in their order.',
  ],
  'anthropic.arguments': ['streaming', 'The arguments of parallel calls are told as they come, under the id and name of each call.'],
  'anthropic.thoughts': [
    'streaming',
    'Thoughts are told as they come and their signature after them; those that follow each other stay apart.',
  ],
  'anthropic.usage': [
    'UAMP events §8.7',
    'input_tokens excludes the cache, cached_tokens is what was read and written; both are told by themselves.',
  ],
  'anthropic.stop': [
    'stop reasons',
    'max_tokens, a full context and a pause end with length, a refusal with content_filter and its explanation.',
  ],
  'anthropic.stream-error': ['errors', 'An error in the stream fails the answer with its words, after what was said and spent.'],
  'anthropic.cut': ['streaming', 'A stream without message_stop is a failure.'],
  'anthropic.refused': ['errors', 'A refusal is told in its words, one of the key is not; 429, 529 and 5xx are tried again.'],
  'anthropic.not-a-stream': ['errors', 'A page, or an error under status 200, is a failure.'],
  'anthropic.abort': ['streaming', 'A cancel closes the connection.'],
  'anthropic.capabilities': ['models', 'What a model can do is known by its name.'],
})
