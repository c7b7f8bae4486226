/** Which names say that a value is a secret. Every place that judges by a name uses these. */

/** Exact names, in lower case: of headers, of fields of events, of log lines. */
const FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'sec-websocket-protocol',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'api_key',
  'apikey',
  'dpop',
  'proof',
  'token',
  'tokens',
  'access_token',
  'refresh_token',
  'id_token',
  'cap_token',
  'x-a2a-notification-token',
  'notification_token',
  'notificationtoken',
  'credential',
  'credentials',
  'password',
  'secret',
  'secrets',
  'client_secret',
  'payment',
  'payment_token',
  'paymenttoken',
  'payment-signature',
  'x-payment',
  'x-payment-token',
  'ap2_credential',
  'x402.payment.payload',
])

/** Whether the value of a field is a secret whatever it says. */
export function isSecretField(name: string): boolean {
  return FIELDS.has(name.toLowerCase())
}

/** Words that make the name of a header or a query parameter a secret one. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'authorization auth key apikey token secret signature sig cookie cookie2 password passwd pass credential credentials session jwt ' +
    'payment dpop proof'
  ).split(' '),
)

/** Chosen anew for each request, or no secret at all. */
const HARMLESS: ReadonlySet<string> = new Set([
  'idempotency-key',
  'x-idempotency-key',
  'sec-websocket-key',
  'mcp-session-id',
  'x-session-id',
])

/** A header or query parameter is secret by a word of its name: `x-api-key` is, `x-ratelimit-remaining-tokens` is not. */
export function isSecretHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return !HARMLESS.has(lower) && lower.split(/[-_.]/).some((word) => WORDS.has(word))
}

/** Headers that say nothing worth hiding: the others that somebody configured may hold a secret under any name. */
const PLAIN =
  /^(accept.*|content-.*|user-agent|host|connection|origin|referer|http-referer|x-title|range|if-.*|.*-version|.*-beta|.*-extensions|openai-organization|openai-project)$/

/** Whether a header that somebody configured may hold a secret. */
export function mayHoldSecret(name: string): boolean {
  return !PLAIN.test(name.toLowerCase())
}

const VARIABLE = /(^|_)(KEYS?|APIKEY|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASS|CREDENTIALS?|AUTHORIZATION|JWT)(_|$)/

/** Whether a variable of an environment holds a secret: `OPENAI_API_KEY`. */
export function isSecretVariable(name: string): boolean {
  return VARIABLE.test(name.toUpperCase())
}

const PAYMENTS: ReadonlySet<string> = new Set([
  'payment_token',
  'paymenttoken',
  'payment-signature',
  'x-payment',
  'x-payment-token',
  'ap2_credential',
  'x402.payment.payload',
])
/** Of a payment (UAMP events §7.2), which has a scheme beside them; elsewhere these may be anything. */
const OF_PAYMENT: ReadonlySet<string> = new Set(['token', 'proof'])

/** Whether a field is what somebody pays with. */
export function isPaymentField(name: string, among: Readonly<Record<string, unknown>>): boolean {
  return PAYMENTS.has(name.toLowerCase()) || (OF_PAYMENT.has(name) && typeof among['scheme'] === 'string')
}
