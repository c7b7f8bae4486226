/** Google's Gemini API, as a client of it. */
import { provider } from '../requirement.ts'

export const google = provider('Gemini API', {
  'google.stream': ['streamGenerateContent', 'Text is told as it comes, with CR LF, comments, and wherever the stream was cut.'],
  'google.system': ['systemInstruction', 'Instructions and system messages are the system instruction.'],
  'google.roles': ['contents', 'Contents have two roles in turn, and the user begins.'],
  'google.media': ['Part', 'Media goes as inlineData or fileData with its type; what it cannot take is named in words.'],
  'google.calls': ['function calling', 'Calls are told with an id each, its own or a new one that is not sent back.'],
  'google.tool-pairs': ['function calling', 'A step has as many functionResponse parts as it has calls, right after it.'],
  'google.tool-results': ['function calling', 'A result is an object with output or error; media is inside, or follows for older models.'],
  'google.tool-choice': ['function calling', 'Choices of OpenAI’s clients become a mode and the names that are allowed.'],
  'google.signatures': ['thought signatures', 'Signatures of calls, texts and thoughts go back in the same place.'],
  'google.unsigned': ['thought signatures', 'A call without a signature of its own gets the one that is not validated.'],
  'google.thoughts': ['thinking', 'Thoughts are told apart from text.'],
  'google.thinking-settings': ['thinking', 'An effort becomes a level or a budget, as the model wants it.'],
  'google.schema': ['UAMP events §8.3', 'A JSON Schema goes as responseJsonSchema; where tools exclude it the model is told in words.'],
  'google.settings': ['generationConfig', 'Settings under its own name win; safety settings are handed on; unknown ones are not sent.'],
  'google.usage': ['UAMP events §8.7', 'input_tokens includes the cached ones; thoughts are output, and told by themselves.'],
  'google.finish': ['FinishReason', 'MAX_TOKENS ends with length, a filter with content_filter; a malformed call is a failure.'],
  'google.blocked': ['promptFeedback', 'A blocked prompt is a refusal.'],
  'google.stream-error': ['errors', 'An error in the stream fails the answer with its words, after what was said and spent.'],
  'google.cut': ['streamGenerateContent', 'A stream without a reason to finish is a failure.'],
  'google.refused': ['errors', 'A refusal is told in its words; 429 and 5xx are tried again.'],
  'google.not-a-stream': ['errors', 'A page, or an error under status 200, is a failure.'],
  'google.abort': ['streamGenerateContent', 'A cancel closes the connection.'],
  'google.images': ['Part', 'Pictures and speech that the model makes are told as media.'],
  'google.capabilities': ['models', 'What a model can do is known by its name.'],
})
