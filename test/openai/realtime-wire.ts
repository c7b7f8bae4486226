import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'

/** A server event as it came over the wire. */
export type Heard = { readonly type: string; readonly [field: string]: any } // eslint-disable-line

export interface RealtimeWire {
  /** Everything that came, in order. */
  readonly heard: readonly Heard[]
  readonly socket: WebSocket
  send(event: object | string | Uint8Array): void
  /** The next event, after those this was asked for before, that fits. */
  next(fits: string | ((event: Heard) => boolean)): Promise<Heard>
  /** Sends and waits for the next event of that type. */
  ask(event: object | string | Uint8Array, type: string): Promise<Heard>
  /** Sends `response.create` after what is given, and returns the response's events, `response.done` last. */
  respond(...before: readonly object[]): Promise<Heard[]>
  closed: Promise<{ readonly code: number; readonly reason: string }>
}

export interface WireOptions {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly protocols?: readonly string[]
}

/** A Realtime client as plain as it can be. */
export async function connect(
  url: string,
  { path = '/v1/realtime?model=m', headers = {}, protocols = [] }: WireOptions = {},
): Promise<RealtimeWire> {
  const socket = new WebSocket(url.replace('http', 'ws') + path, [...protocols], { headers })
  onTestFinished(() => socket.terminate())
  const heard: Heard[] = []
  let cursor = 0
  let waiting: (() => void)[] = []
  const wake = (): void => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  let gone: { code: number; reason: string } | undefined
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => {
      gone = { code, reason: reason.toString() }
      resolve(gone)
      wake()
    }),
  )
  socket.on('message', (data: Buffer) => {
    heard.push(JSON.parse(data.toString()) as Heard)
    wake()
  })
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  socket.on('error', () => undefined)

  const next = async (fits: string | ((event: Heard) => boolean)): Promise<Heard> => {
    for (;;) {
      while (cursor < heard.length) {
        const event = heard[cursor++] as Heard
        if (typeof fits === 'string' ? event.type === fits : fits(event)) return event
      }
      if (gone) throw new Error(`closed with ${gone.code} ${gone.reason}`)
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }
  const send = (event: object | string | Uint8Array): void =>
    socket.send(typeof event === 'string' || event instanceof Uint8Array ? event : JSON.stringify(event))
  const wire: RealtimeWire = {
    heard,
    socket,
    closed,
    send,
    next,
    ask: (event, type) => {
      send(event)
      return next(type)
    },
    async respond(...before) {
      for (const event of before) send(event)
      send({ type: 'response.create' })
      const created = await next('response.created')
      const from = heard.indexOf(created)
      await next('response.done')
      return heard.slice(from, cursor)
    },
  }
  await next('session.created')
  return wire
}

/** A user's message. */
export function says(text: string): object {
  return { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } }
}

export const typesOf = (events: readonly Heard[]): string[] => events.map(({ type }) => type)

/** The events with ids told by number (`item 1`) in the order of their first appearance, and without their own. */
export function withoutIds(events: readonly Heard[]): Heard[] {
  const names = new Map<string, string>()
  const counts = new Map<string, number>()
  const name = (id: string, kind: string): string => {
    const known = names.get(id)
    if (known !== undefined) return known
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    names.set(id, `${kind} ${count}`)
    return `${kind} ${count}`
  }
  return events.map(({ event_id: _, ...event }) => {
    const text = JSON.stringify(event).replace(/\b(resp|item|conv|sess)_[0-9a-f-]{36}/g, (id, kind: string) => name(id, kind))
    return JSON.parse(text) as Heard
  })
}

/** What both dialects call differently. */
export const DIALECTS = {
  ga: {
    options: {},
    text: 'response.output_text',
    audio: 'response.output_audio',
    transcript: 'response.output_audio_transcript',
    textPart: 'output_text',
    audioPart: 'output_audio',
    added: ['conversation.item.added', 'conversation.item.done'],
    session: (settings: {
      modalities?: string[]
      input?: object
      output?: object
      format?: string
      outputFormat?: string
      [field: string]: unknown
    }) => {
      const { modalities, format, outputFormat, turn_detection, ...rest } = settings
      const input = {
        ...(format !== undefined && { format: { type: GA_FORMATS[format] } }),
        ...(turn_detection !== undefined && { turn_detection }),
      }
      const output = outputFormat === undefined ? {} : { format: { type: GA_FORMATS[outputFormat] } }
      return {
        type: 'session.update',
        session: { type: 'realtime', ...(modalities && { output_modalities: modalities }), audio: { input, output }, ...rest },
      }
    },
  },
  beta: {
    options: { headers: { 'OpenAI-Beta': 'realtime=v1' } },
    text: 'response.text',
    audio: 'response.audio',
    transcript: 'response.audio_transcript',
    textPart: 'text',
    audioPart: 'audio',
    added: ['conversation.item.created'],
    session: (settings: { modalities?: string[]; format?: string; outputFormat?: string; [field: string]: unknown }) => {
      const { modalities, format, outputFormat, ...rest } = settings
      return {
        type: 'session.update',
        session: {
          ...(modalities && { modalities }),
          ...(format !== undefined && { input_audio_format: format }),
          ...(outputFormat !== undefined && { output_audio_format: outputFormat }),
          ...rest,
        },
      }
    },
  },
} as const

const GA_FORMATS: Readonly<Record<string, string>> = { pcm16: 'audio/pcm', g711_ulaw: 'audio/pcmu', g711_alaw: 'audio/pcma' }

export const BOTH = ['ga', 'beta'] as const
