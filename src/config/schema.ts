/** The form of a config. Its paths are relative to its own folder. */
import * as z from 'zod/mini'
import { CORE_LIMITS } from '../core/basics/limits.ts'
import { kindOf } from '../protocol/explain.ts'
import { Tools } from '../protocol/tools.ts'
import { MODEL_FORM, MODEL_NAME, PROVIDER_TYPES } from '../providers/by-name.ts'
import { PROTOCOLS } from '../serve/protocols.ts'
import { DEFAULT_LIMITS } from '../server/limits.ts'
import { OMNIA_LIMITS } from '../transports/omnia/options.ts'
import { ACCESS_FIELDS } from './access.ts'
import { ModelPrice, PaymentsEntry, RemotePrice, ToolPrices } from './payments.ts'

const text = z.optional(z.string())
const texts = z.optional(z.array(z.string()))
const table = z.optional(z.record(z.string(), z.string()))
export const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const AgentName = z
  .string('must be the name that clients use for it')
  .check(z.regex(AGENT_NAME, 'must be made of letters, digits, dots, dashes and underscores'))

interface Range {
  readonly least: number
  readonly most?: number
  /** What is counted. */
  readonly unit?: string
}

/** One message for everything that may be wrong with a number, because half a port is not out of range, and port 70000 is a whole number. */
function whole({ least, most = Number.MAX_SAFE_INTEGER, unit = '' }: Range) {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
  return number((value) => Number.isSafeInteger(value) && value >= least && value <= most, `must be a whole number ${unit}${range}`)
}

function number(fits: (value: number) => boolean, message: string) {
  return z.custom<number>((value) => typeof value === 'number' && fits(value), { error: ({ input }) => `${message}${instead(input)}` })
}

function instead(input: unknown): string {
  if (input === undefined) return ', but is missing'
  return typeof input === 'number' ? `, but is ${input}` : `, not ${kindOf(input)}`
}

/** The protocols that an agent is offered through. */
const Protocols = z.optional(z.array(z.enum(PROTOCOLS)))

const ModelName = z.string(MODEL_FORM).check(z.regex(MODEL_NAME, MODEL_FORM))

/** An MCP server: a program to start, or an address. */
const McpEntry = z.strictObject({
  name: text,
  command: text,
  args: texts,
  env: table,
  cwd: text,
  url: text,
  headers: table,
  prefix: text,
  only: texts,
  needsApproval: z.optional(z.union([z.boolean(), z.array(z.string())], 'must be true, false or a list of tools')),
  prices: ToolPrices,
})
export type McpEntry = z.infer<typeof McpEntry>

/** A model with instructions and tools. */
export const ModelEntry = z.strictObject({
  name: AgentName,
  description: text,
  protocols: Protocols,
  model: ModelName,
  fallbacks: z.optional(z.array(ModelName)),
  instructions: text,
  settings: z.optional(z.record(z.string(), z.unknown())),
  tools: texts,
  mcp: z.optional(z.array(McpEntry)),
  handoffs: texts,
  maxSteps: z.optional(whole({ least: 1 })),
  price: z.optional(ModelPrice),
})
export type ModelEntry = z.infer<typeof ModelEntry>

/** A program that speaks ACP. `write` and `terminal` allow both in its folder; default: true. */
const AcpProgram = z.strictObject({
  command: z.string('must be the program to start, such as "npx"'),
  args: texts,
  env: table,
  folder: z.string('must be the folder that the program works in'),
  write: z.optional(z.boolean()),
  terminal: z.optional(z.boolean()),
})

const flag = z.optional(z.boolean('must be true or false'))

/** How a remote agent is shown who calls: see `RemoteAuth`. */
const RemoteAuth = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('self'), as: z.optional(z.enum(['agent', 'caller'])), scope: text, target: text }),
    z.strictObject({
      type: z.literal('client'),
      clientId: z.string('must be the id of the client at the other server'),
      clientSecret: text,
      clientSecretEnv: text,
      privateKey: z.optional(z.union([z.string(), z.record(z.string(), z.unknown())], 'must be a private JWK, or "${NAME}"')),
      tokenUrl: text,
      scope: text,
      target: text,
      exchange: flag,
    }),
  ],
  'must have a "type": "self" for tokens of this server, or "client" for a client of the other one',
)
export type RemoteAuthEntry = z.infer<typeof RemoteAuth>

const Remote = z.strictObject({
  url: z._default(z.string('must be the address of the other server, such as "https://agents.example"'), ''),
  acp: z.optional(AcpProgram),
  protocol: z.optional(z.enum(['events', 'completions', 'a2a', 'ag-ui', 'envelope'])),
  agent: text,
  model: text,
  token: text,
  tokenEnv: text,
  auth: z.optional(RemoteAuth),
  headers: table,
})

/** A remote agent. */
export const RemoteEntry = z.strictObject({
  name: AgentName,
  description: text,
  protocols: Protocols,
  price: z.optional(RemotePrice),
  remote: Remote,
})
export type RemoteEntry = z.infer<typeof RemoteEntry>

/** The longest timer in JavaScript. */
const LONGEST_MS = 2 ** 31 - 1
const milliseconds = z.optional(whole({ least: 1, most: LONGEST_MS, unit: 'of milliseconds ' }))

export const ProviderEntry = z.strictObject({
  type: z.optional(z.enum(PROVIDER_TYPES)),
  apiKey: text,
  apiKeyEnv: text,
  baseUrl: text,
  headers: table,
  retries: z.optional(whole({ least: 0, most: 10 })),
  timeouts: z.optional(z.strictObject({ firstByteMs: milliseconds, idleMs: milliseconds, totalMs: milliseconds })),
})
export type ProviderEntry = z.infer<typeof ProviderEntry>

const dollars = number((value) => Number.isFinite(value) && value >= 0, 'must be US dollars for a million tokens, 0 or more')
const Price = z.strictObject({
  input: dollars,
  output: dollars,
  cacheRead: z.optional(dollars),
  cacheWrite: z.optional(dollars),
})

const rate = number((value) => Number.isFinite(value) && value > 0, 'must be a number above 0')
/** A limit of 0 would let nobody do anything. */
const serverLimit = (name: string) => (name.endsWith('PerSecond') ? rate : whole({ least: 1 }))
const omniaLimit = () => whole({ least: 1, most: LONGEST_MS })
const limitsOf = (all: object, each: (name: string) => z.ZodMiniType<number>) =>
  z.optional(z.strictObject(Object.fromEntries(Object.keys(all).map((name) => [name, z.optional(each(name))]))))

const Secret = z.string('must be the secret, or "${NAME}" for the variable NAME of the environment')

const Grant = z.custom<'platform' | 'bank' | `host:${string}`>(
  (value) => typeof value === 'string' && /^(platform|bank|host:[A-Za-z0-9][A-Za-z0-9._-]*(\.\*)?)$/.test(value),
  'must be "platform", "bank", "host:" and the name of an agent, or "host:" and the beginning of names, such as "host:team.*"',
)

/** A host that agents of this config are offered through. */
const ConnectEntry = z.strictObject({
  url: z.string('must be the address of the host, such as "wss://host/ws"'),
  agents: texts,
  token: text,
  tokenEnv: text,
  tokenFile: text,
})
export type ConnectEntry = z.infer<typeof ConnectEntry>

export const Config = z.strictObject({
  /** `check.ts` checks each entry, because its form depends on its kind. */
  agents: z.array(z.unknown()).check(z.minLength(1, 'must name an agent, such as ["./agent.ts"]')),
  providers: z.optional(z.record(z.string(), ProviderEntry)),
  prices: z.optional(z.record(z.string(), Price)),
  limits: limitsOf({ ...DEFAULT_LIMITS, ...CORE_LIMITS }, serverLimit),
  port: z.optional(whole({ least: 0, most: 65_535 })),
  host: text,
  data: text,
  tokens: z.optional(z.record(z.string(), Secret)),
  grants: z.optional(z.record(z.string(), z.array(Grant))),
  access: z.optional(z.strictObject(ACCESS_FIELDS)),
  payments: z.optional(PaymentsEntry),
  hosting: z.optional(z.enum(['share', 'takeover'])),
  connect: z.optional(z.array(ConnectEntry, 'must list the hosts, such as [{ url: "wss://host/ws" }]')),
  origins: texts,
  tls: z.optional(
    z.strictObject({
      cert: z.string('must be the PEM file with the certificate'),
      key: z.string('must be the PEM file with the key of the certificate'),
      clientCa: text,
    }),
  ),
  publicUrl: text,
  sign: z.optional(z.enum(['asked', 'always', 'never'], 'must be "asked", "always" or "never": when answers are signed')),
  trustProxy: z.optional(z.array(z.string(), 'must list the proxies, such as ["10.0.0.0/8"]')),
  allowedHosts: texts,
  outbound: z.optional(z.strictObject({ allow: texts })),
  a2a: z.optional(
    z.strictObject({
      card: z.optional(z.enum(['hybrid', '1.0'])),
      version: text,
      provider: z.optional(z.strictObject({ organization: z.string(), url: z.string() })),
      maxAgeSeconds: z.optional(whole({ least: 0 })),
      sign: z.optional(z.boolean()),
    }),
  ),
  envelope: z.optional(
    z.strictObject({
      senders: table,
      keys: z.optional(z.record(z.string(), z.strictObject({ keys: z.array(z.record(z.string(), z.unknown())) }))),
      anchors: texts,
      skewSeconds: z.optional(whole({ least: 1 })),
      maxBodyKb: z.optional(whole({ least: 1, most: 65_536 })),
    }),
  ),
  omnia: z.optional(
    z.strictObject({
      toolMessages: z.optional(z.boolean()),
      clientTools: z.optional(Tools),
      limits: limitsOf(OMNIA_LIMITS, omniaLimit),
    }),
  ),
  log: z.optional(
    z.strictObject({
      level: z.optional(z.enum(['debug', 'info', 'warn', 'error', 'silent'])),
      format: z.optional(z.enum(['text', 'json'])),
      access: z.optional(z.boolean('must be true or false: one log line for each request')),
    }),
  ),
  defaultAgent: text,
})
export type RawConfig = z.infer<typeof Config>
