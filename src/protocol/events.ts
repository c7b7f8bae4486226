import * as z from 'zod/mini'
import * as c from './client-events.ts'
import { FIRST_EXPLAINED } from './explain.ts'
import * as x from './extension-events.ts'
import type { Slot } from './json.ts'
import * as s from './server-events.ts'

/** Everything a client may send: the 20 events of UAMP events §15, the read receipt (§7.1), and the answer to an approval. */
export const ClientEvent = z.discriminatedUnion('type', [
  c.SessionCreate,
  c.SessionUpdate,
  c.SessionEnd,
  c.CapabilitiesQuery,
  c.ClientCapabilities,
  c.InputText,
  c.InputAudio,
  c.InputImage,
  c.InputVideo,
  c.InputFile,
  c.InputTyping,
  c.ResponseCreate,
  c.ResponseCancel,
  c.ToolResultEvent,
  c.PaymentSubmit,
  c.VoiceInvite,
  c.VoiceAccept,
  c.VoiceDecline,
  c.VoiceEnd,
  c.Ping,
  c.MessageRead,
  x.ApprovalResponse,
])
export type ClientEvent = z.infer<typeof ClientEvent>

/** Everything a server may send: the 32 events of UAMP events §15, the two that go both ways, and the extensions. */
export const ServerEvent = z.discriminatedUnion('type', [
  s.SessionCreated,
  s.SessionUpdated,
  s.SessionErrorEvent,
  s.CapabilitiesEvent,
  s.ResponseCreated,
  s.ResponseDelta,
  s.ResponseDone,
  s.ResponseError,
  s.ResponseCancelled,
  s.ToolCallEvent,
  s.ToolCallDone,
  s.Progress,
  s.Thinking,
  s.AudioDelta,
  s.AudioDone,
  s.TranscriptDelta,
  s.TranscriptDone,
  s.UsageDelta,
  s.RateLimit,
  s.PresenceTyping,
  s.PresenceOnline,
  s.PresenceOffline,
  s.MessageCreated,
  c.MessageRead,
  s.PaymentRequired,
  s.PaymentAccepted,
  s.PaymentBalance,
  s.PaymentErrorEvent,
  c.VoiceAccept,
  c.VoiceDecline,
  c.VoiceEnd,
  s.Pong,
  c.SessionEnd,
  c.VoiceInvite,
  x.StateSnapshot,
  x.StateDelta,
  x.MessagesSnapshot,
  x.ActivitySnapshot,
  x.ActivityDelta,
  x.StepStarted,
  x.StepFinished,
  x.ApprovalRequest,
  x.Plan,
  x.SubagentStarted,
  x.SubagentFinished,
  x.ReasoningEncrypted,
  x.Custom,
  x.Raw,
  x.Ack,
])
export type ServerEvent = z.infer<typeof ServerEvent>

/** The types of all events that a server may send. */
export const SERVER_EVENTS: ReadonlySet<string> = new Set(ServerEvent.def.options.map(({ shape }) => shape.type.def.values[0] as string))

type AnyEvent = ClientEvent | ServerEvent
export type EventOf<T extends AnyEvent['type']> = Extract<AnyEvent, { type: T }>

/** An event before the session has stamped it: what agents and providers yield. */
export type Draft<E = ServerEvent> = E extends { type: infer T }
  ? { readonly type: T } & Omit<E, 'type' | 'event_id' | 'timestamp' | 'session_id' | 'response_id' | 'seq'>
  : never

/** A value of another server as a draft, if it has the form of one. Keeps fields that it adds. */
export function draftIn(given: Slot): Draft | undefined {
  const stamped = { ...given, event_id: '', session_id: '', response_id: '' }
  return z.safeParse(ServerEvent, stamped, FIRST_EXPLAINED).success ? (given as unknown as Draft) : undefined
}

/** A client event without an id. */
export type Unsent<E = ClientEvent> = E extends unknown ? Omit<E, 'event_id'> : never
