import { parseValue } from '../wire/parse.ts'
import { UampError } from '../protocol/errors.ts'
import { envelopeError } from './codes.ts'
import { Envelope } from './schema.ts'
import { strictObject } from './strict-json.ts'

/** A message whose form is right. Nothing in it is verified. */
export interface ReadMessage {
  readonly envelope: Envelope
  /** Every member as it came: this is what is signed. */
  readonly members: Readonly<Record<string, unknown>>
}

/** Reads an envelope from the bytes or the text of a message. Throws `4.00` with what is wrong, and `4.01` if it is not signed. */
export function readEnvelope(message: Uint8Array | string): ReadMessage {
  return envelopeIn(strictObject(message))
}

/** As `readEnvelope`, of members that `strictObject` has read. */
export function envelopeIn(members: ReadMessage['members']): ReadMessage {
  // For the schema it is one member of many, but who sends without one is nobody yet.
  if (members['sig'] === undefined) throw envelopeError('4.01', 'The message is not signed', 'signature')
  try {
    return { envelope: parseValue(Envelope, members), members }
  } catch (thrown) {
    if (!(thrown instanceof UampError) || thrown.code !== 'invalid_request') throw thrown
    throw envelopeError('4.00', thrown.message, 'schema')
  }
}
