export { bodyOf, openBody, type OpenOptions } from './body.ts'
export { hashOf } from './canonical.ts'
export { checkCapability, type CapabilityUse } from './capability.ts'
export { codeOf, CODES, type EnvelopeCode } from './codes.ts'
export { didDocument, signingKeys, type PublishedKey, type Service } from './did-document.ts'
export { didOfUrl, documentUrl, isSameDid } from './did.ts'
export { readEnvelope, type ReadMessage } from './message.ts'
export { type Body, type Delta, type Envelope, type Intent, type Manifest, type Unsigned } from './schema.ts'
export { envelopeSchemas } from './schemas.ts'
export { signDocument, verifyDocument, type DocumentType } from './signed-document.ts'
export {
  readSignature,
  signEnvelope,
  verifySignature,
  type Signature,
  type SignatureAlg,
  type SigningKey,
  type Verified,
  type VerifyKey,
} from './signature.ts'
export { isOver, stateAfter, type ExchangeState, type Step } from './states.ts'
