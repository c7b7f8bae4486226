/** A2A 1.0.1: the agent card, and push notifications. */
import { a2a } from '../requirement.ts'

export const a2aCard = a2a('1.0.1', {
  'a2a-1.0.card-available': ['8.1, 8.2', 'Every agent has a card at /.well-known/agent-card.json, without credentials.'],
  'a2a-1.0.card-required': ['4.4.1, 5.7', 'The card has every required field, and no required array is empty.'],
  'a2a-1.0.card-interfaces': ['8.3.1', 'Each interface of the card says its URL, binding and version as they are; the first is preferred.'],
  'a2a-1.0.card-caching': ['8.6.1', 'The card comes with Cache-Control, ETag and Last-Modified, and a client that has it gets 304.'],
  'a2a-1.0.card-security': ['7.3, 4.5', 'A server that wants a token says so in the card.'],
  'a2a-1.0.card-canonical': ['8.4.1', 'What is signed is RFC 8785 of the card without its signatures and without defaults.'],
  'a2a-1.0.card-signature': [
    '8.4.2',
    'A signature is a JWS whose protected header has alg, typ and kid; any change of the card breaks it.',
  ],
  'a2a-1.0.extended-card': ['3.1.11, 13.3', 'The extended card is for authenticated callers alone, and may have more than the public one.'],
  'a2a-1.0.extended-card-unsupported': [
    '3.3.4',
    'Where the card does not offer an extended card the operation is UnsupportedOperationError.',
  ],
  'a2a-1.0.extended-card-not-configured': ['3.3.4', 'Where it is offered, but there is none, it is ExtendedAgentCardNotConfiguredError.'],
})

export const a2aPush = a2a('1.0.1', {
  'a2a-1.0.push-create': ['3.1.7', 'A config that is created gets an id, and stays until it is deleted.'],
  'a2a-1.0.push-get': ['3.1.8', 'A config is given back as it was set; one that is not there, or is not the caller’s, is not found.'],
  'a2a-1.0.push-list': ['3.1.9', 'All configs of a task are listed, in pages.'],
  'a2a-1.0.push-delete': ['3.1.10', 'A deleted config gets nothing more; deleting it again has the same effect.'],
  'a2a-1.0.push-unsupported': ['3.3.4', 'Where the card does not offer push notifications every operation of them says so.'],
  'a2a-1.0.push-payload': ['4.3.3', 'A webhook is posted a StreamResponse as application/a2a+json.'],
  'a2a-1.0.push-credentials': ['4.3.3, 13.2', 'The request carries the credentials that the config has.'],
  'a2a-1.0.push-delivery': ['4.3.3', 'Every webhook of a task gets each of its events at least once, in their order, with retries.'],
  'a2a-1.0.push-ssrf': ['13.2', 'No webhook on this machine, in a private network or at a link-local address is called.'],
})
