/** UAMP transports: what it says of all protocols, and of the code that offers an agent. */
import { uampTransports } from '../requirement.ts'

export const transportsApi = uampTransports('transport', {
  'uamp-transports.dotted-names': ['Completions Transport', 'An agent whose name has dots is reached under it on every protocol.'],
  'uamp-transports.card-fields': [
    'A2A Transport, Agent Card',
    'agent.json has name, description, version, protocolVersion, streaming, pushNotifications, both default modes and skills.',
  ],
  'uamp-transports.agent-app': ['Server Wiring', 'createAgentApp gives an app for HTTP and a function that takes upgrades.'],
  'uamp-transports.many-agents': ['Multi-Agent Server', 'Each agent of a server has every protocol under /agents/{name}.'],
  'uamp-transports.add-skill': ['Quick Start', 'addSkill gives an agent another skill, and wires it up.'],
  'uamp-transports.handoff-name': ['execute_handoff()', 'Code that asks an agent may name the handoff that answers.'],
  'uamp-transports.http': ['Creating Custom Transports', 'A skill has HTTP endpoints; what an async generator yields is streamed as SSE.'],
  'uamp-transports.websocket': ['WebSocket Handlers', 'A skill has WebSocket endpoints that read and send JSON messages.'],
  'uamp-transports.chosen': ['Quick Start', 'An agent that is given some transports has those, and no others.'],
})

export const laterTransports = uampTransports(
  'transport',
  {
    'uamp-transports.portal-connect': ['Inbound', 'An agent without a public address connects to a platform and answers there.'],
    'uamp-transports.jwks': ['Response Signing', 'The keys that verify signatures are at /.well-known/jwks.json.'],
  },
  'identity',
)

export const transportPayments = uampTransports('payment', {
  'openai-completions.payment': ['Payment Handling, Completions', 'X-PAYMENT pays for the request when it is verified, and only then.'],
  'openai-responses.payment': ['Payment Handling, Completions', 'X-PAYMENT pays for a response when it is verified, and only then.'],
  'openai-realtime.payment': ['Payment Handling, Realtime', 'payment.submit pays when it is verified; else payment.error says why.'],
  'a2a-1.0.payment-input': ['Payment Handling, A2A', 'A task goes on with a payment that is verified, and keeps asking otherwise.'],
  'uamp-tasks.payment-retry': [
    'Payment Handling, A2A',
    'A new task with X-PAYMENT is paid for when that is verified, and fails otherwise.',
  ],
  'acp-uamp.payment': ['Payment Handling, ACP', 'payment_token pays for a prompt when it is verified; else the prompt fails with -32402.'],
  'ag-ui.payment': ['Payment Handling', 'A run is paid for by what is verified, and refused with 402 otherwise.'],
  'omnia.payment': ['Payment Handling', 'metadata.payment_token pays when it is verified, and is PAYMENT_REQUIRED otherwise.'],
  'uamp-transports.topup': [
    'Mid-Stream Token Top-Up',
    'A top-up in mid-answer is payment.required with extra.action "topup", and the answer goes on.',
  ],
})

export const paidTransports = uampTransports('payment', {
  'uamp-transports.topup-endpoint': ['Mid-Stream Token Top-Up', 'POST /api/payments/tokens/{id}/topup adds to the balance of a token.'],
})
