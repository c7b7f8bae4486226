/** Names that say that a value is a secret. All code that judges by names uses these. */

const PAYMENTS: ReadonlySet<string> = new Set([
  'payment_token',
  'paymenttoken',
  'payment-signature',
  'x-payment',
  'x-payment-token',
  'ap2_credential',
  'x402.payment.payload',
])

/** Exact names in lower case, of headers, event fields and log fields. */
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
  'upload_url',
  'payment',
  ...PAYMENTS,
])

/** True if the value of this field is always a secret. */
export function isSecretField(name: string): boolean {
  return FIELDS.has(name.toLowerCase())
}

/** Words that mark a header or a query parameter as secret. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'authorization auth key apikey token secret signature sig cookie cookie2 password passwd pass credential credentials session jwt ' +
    'payment dpop proof'
  ).split(' '),
)

/** Names that contain such a word, but hold a value that is new for each request, or is no secret. */
const HARMLESS: ReadonlySet<string> = new Set([
  'idempotency-key',
  'x-idempotency-key',
  'sec-websocket-key',
  'mcp-session-id',
  'x-session-id',
])

/** True if a word in the name of a header or query parameter says so: `x-api-key` yes, `x-ratelimit-remaining-tokens` no. */
export function isSecretHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return !HARMLESS.has(lower) && lower.split(/[-_.]/).some((word) => WORDS.has(word))
}

/** Headers that hold no secret. Any other header that an operator configured may hold one, whatever its name. */
const PLAIN =
  /^(accept.*|content-.*|user-agent|host|connection|origin|referer|http-referer|x-title|range|if-.*|.*-version|.*-beta|.*-extensions|openai-organization|openai-project)$/

/** True if a header from the configuration may hold a secret. */
export function mayHoldSecret(name: string): boolean {
  return !PLAIN.test(name.toLowerCase())
}

const VARIABLE = /(^|_)(KEYS?|APIKEY|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASS|CREDENTIALS?|AUTHORIZATION|JWT)(_|$)/

/** True if an environment variable holds a secret: `OPENAI_API_KEY`. */
export function isSecretVariable(name: string): boolean {
  return VARIABLE.test(name.toUpperCase())
}

/** Fields of a payment (UAMP events §7.2), which has a `scheme` beside them; elsewhere these names may mean anything. */
const OF_PAYMENT: ReadonlySet<string> = new Set(['token', 'proof'])

/** True if a field holds a payment. */
export function isPaymentField(name: string, among: Readonly<Record<string, unknown>>): boolean {
  return PAYMENTS.has(name.toLowerCase()) || (OF_PAYMENT.has(name) && typeof among['scheme'] === 'string')
}
