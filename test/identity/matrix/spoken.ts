/** What clients say on sockets that are one session: an example of each type. */

const CALL = { call_id: 'none' }

export const OMNIA = {
  tool_call_ack: { tool_call_ack: CALL },
  tool_call_nack: { tool_call_nack: CALL },
  tool_result: { tool_result: { ...CALL, result: 1 } },
  message: { content: 'Hello' },
  upload_request: { upload_request: { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 1 } },
  // Comes last, as it ends the connection.
  hangup: {},
} as const

const ITEM = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }], id: 'item-1' }

export const REALTIME = {
  'input_audio_buffer.append': { audio: 'AAAAAAAA' },
  'input_audio_buffer.commit': {},
  'input_audio_buffer.clear': {},
  'output_audio_buffer.clear': {},
  'conversation.item.create': { item: ITEM },
  'conversation.item.retrieve': { item_id: 'item-1' },
  'conversation.item.truncate': { item_id: 'item-1', content_index: 0, audio_end_ms: 0 },
  'conversation.item.delete': { item_id: 'item-1' },
  'response.create': {},
  'response.cancel': {},
  'payment.submit': { payment: { scheme: 'token', token: 't' } },
  'session.update': { session: { type: 'realtime', instructions: 'Be brief' } },
} as const
