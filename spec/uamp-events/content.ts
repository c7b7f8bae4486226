/** Inputs, messages and content ids: UAMP events §5.6 to §5.10, §8.4, §8.5. */
import { uampEvents } from '../requirement.ts'

export const content = uampEvents('content', {
  'uamp:content:one-message': ['8.5.1', 'Inputs are gathered and become one message with content items when response.create comes.'],
  'uamp:content:from-text': ['8.5.1', 'input.text becomes a text item.'],
  'uamp:content:from-image': ['8.5.1', 'input.image becomes an image item with format, detail and content id.'],
  'uamp:content:from-audio': ['8.5.1', 'input.audio becomes an audio item with format and content id.'],
  'uamp:content:audio-final': ['5.7', 'Chunks of audio up to `is_final` are one stream.'],
  'uamp:content:from-video': ['8.5.1', 'input.video becomes a video item with format and content id.'],
  'uamp:content:from-file': ['8.5.1', 'input.file becomes a file item with name, type and content id.'],
  'uamp:content:unmodified': ['8.5.1', 'Content items go through a transport as they are.'],
  'uamp:content:id-kept': ['8.5.1', 'A content id that came with an input stays with the item.'],
  'uamp:content:id-from-url': ['8.5.4', 'Without one, the UUID in an /api/content/ URL becomes the content id.'],
  'uamp:content:id-new': ['8.5.1, 8.5.4', 'Base64 and other URLs get a new random UUID.'],
  'uamp:content:id-everywhere': [
    '8.5.4',
    'Media in results has a content id, too, of tools of the server, of the client and of MCP servers.',
  ],
  'uamp:content:id-media-only': ['8.5.4', 'Text, tool calls and tool results have no content id.'],
  'uamp:content:id-in-history': ['8.5.4', 'Content ids stay in the conversation, which is the only registry of content.'],
  'uamp:content:description': ['8.5.4', 'A content item may carry a description beside its id.'],
  'uamp:content:stateless': ['5.6', '`messages` on input.text is the whole conversation for that response.'],
  'uamp:content:conversation': ['1.2, 8.5', 'A session remembers its conversation, what the assistant said included.'],
  'uamp:content:role': ['5.6', 'The role of input.text is user unless it says system or assistant.'],
  'uamp:content:context': ['5.6', '`context` takes any fields and is handed on as it came.'],
  'uamp:content:slots': ['14.3', '`extensions` and `metadata` of an input reach the agent with its message, and stay in the conversation.'],
  'uamp:content:items-win': ['8.5', 'Where a message has both, the content items are the whole of it.'],
  'uamp:content:content-is-text': ['8.5', 'Where a message has both, `content` is the text of the items.'],
  'uamp:content:openai-calls': ['8.5, 8.6', 'Calls in `tool_calls` are understood in the form of OpenAI, too.'],
  'uamp:content:text-purity': ['8.5.4', 'No content URL is put into text.'],
})
