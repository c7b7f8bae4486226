import type { Call } from '../../core/ports/transport.ts'
import { hidden } from '../../core/secrets/sealing.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { contextText } from '../../wire/ag-ui/messages.ts'
import { parseBody, parseValue } from '../../wire/parse.ts'
import { paymentFrom } from '../../wire/payment.ts'
import { OwnProps, RunAgentInput, type ResumeEntry, type WireMessage } from './schema.ts'

/** A request in the terms of sessions. */
export interface Asked {
  readonly threadId: string
  readonly runId: string
  readonly parentRunId: string | undefined
  /** The client speaks 0.0.x. */
  readonly legacy: boolean
  /** Without the leading system and developer messages, which become `instructions`. */
  readonly messages: readonly WireMessage[]
  readonly instructions: string | undefined
  readonly tools: readonly ToolDefinition[]
  readonly resume: readonly ResumeEntry[]
  readonly state: unknown
  /** Other fields that an agent may want to read. */
  readonly extras: Readonly<Record<string, unknown>>
  readonly detach: boolean
  /** The client brings only what is new. */
  readonly join: boolean
  /** The request as it came, without its secrets, for a client that wants it back. */
  readonly input: Readonly<Record<string, unknown>> | undefined
  readonly payment: Payment | undefined
  /** How often the run was passed on, as its sender says. */
  readonly hops: unknown
}

/** The longest input that is kept with its run and told again. */
const INPUT_LENGTH = 256 * 1024

const NONE = { detach: false, join: false, input: false, payment_token: undefined, hops: undefined }

export async function toAsked(call: Call): Promise<Asked> {
  const { request } = call
  const body = await call.text()
  const input = parseBody(RunAgentInput, body)
  const { threadId, runId, parentRunId, context, forwardedProps, resume, state } = input
  const isOwn = isRecord(forwardedProps) && forwardedProps['uamp'] != null
  const own = isOwn ? parseValue(OwnProps, { forwardedProps }).forwardedProps.uamp : NONE
  const { detach, join, input: repeats, payment_token: token, hops } = own
  const first = input.messages.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  const begin = first < 0 ? input.messages.length : first
  const entries = resume == null ? [] : Array.isArray(resume) ? resume : [resume]
  return {
    threadId,
    runId,
    parentRunId: parentRunId ?? undefined,
    legacy: isLegacy(input.protocolVersion ?? undefined),
    messages: input.messages.slice(begin),
    instructions: instructionsOf(input.messages.slice(0, begin), context ?? []),
    tools: toolsOf(input),
    resume: entries,
    state: state ?? undefined,
    extras: {
      threadId,
      runId,
      ...(context?.length && { context }),
      ...(forwardedProps != null && { forwardedProps: unpaid(forwardedProps) }),
    },
    detach: detach ?? false,
    join: join ?? false,
    input: repeats && body.length <= INPUT_LENGTH ? repeated(JSON.parse(body)) : undefined,
    payment: paymentFrom(request.headers) ?? (token == null ? undefined : { scheme: 'token', token }),
    hops,
  }
}

/** The configuration that a run sets for its own response, on top of the session's. */
export function settingsOf(asked: Asked, { extensions = {} }: SessionConfig, memory: object) {
  const { state, extras, instructions, tools } = asked
  const uamp = isRecord(extensions['uamp']) ? extensions['uamp'] : {}
  const own = { 'ag-ui': { ...extras, ...memory }, ...(state !== undefined && { uamp: { ...uamp, state } }) }
  return {
    tools: [...tools],
    extensions: { ...extensions, ...own },
    ...(instructions !== undefined && { instructions }),
  }
}

/** Hides the client's secrets, because the note of a run is stored as it is. */
function repeated({ forwardedProps, ...input }: Readonly<Record<string, unknown>>) {
  return hidden({ ...input, forwardedProps: unpaid(forwardedProps) })
}

/** Removes the payment, which must not be stored with the run. The agent gets it when it asks for payment. */
function unpaid(forwardedProps: unknown): unknown {
  if (!isRecord(forwardedProps) || !isRecord(forwardedProps['uamp'])) return forwardedProps
  const { payment_token: _, ...uamp } = forwardedProps['uamp']
  return { ...forwardedProps, uamp }
}

/** Clients of 1.0 name their version; older ones name none. */
export function isLegacy(version: string | undefined): boolean {
  if (version === undefined || /^0(\.|$)/.test(version)) return true
  if (/^1(\.\d+)*$/.test(version)) return false
  throw new UampError('version_mismatch', `AG-UI "${version}" is not supported here: send "protocolVersion": "1.0", or none for 0.0.x`, {
    details: { client_version: version, supported_versions: ['1.0', '0.0'] },
  })
}

function instructionsOf(messages: readonly WireMessage[], context: NonNullable<RunAgentInput['context']>): string | undefined {
  const told = messages.flatMap((message) => ('content' in message && typeof message.content === 'string' ? [message.content] : []))
  // Instructions are a text, in which nobody finds a secret again to seal it. The agent has all of the context in `extras`.
  const besides = contextText(hidden(context))
  if (besides !== undefined) told.push(besides)
  return told.length === 0 ? undefined : told.join('\n\n')
}

function toolsOf({ tools }: RunAgentInput): ToolDefinition[] {
  return (tools ?? []).map(({ name, description, parameters }) => ({
    type: 'function',
    function: { name, ...(description != null && { description }), ...(parameters != null && { parameters }) },
  }))
}
