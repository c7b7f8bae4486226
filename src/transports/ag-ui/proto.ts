import { joinedBytes } from '../../protocol/bytes.ts'
import type { AgUiEvent, Clock, Out, Shape, Wire } from './events.ts'

/** The part of `@ag-ui/proto` that is used. Users install the package themselves. */
export interface ProtoModule {
  encode(event: AgUiEvent): Uint8Array
}

const PROTO_TYPE = 'application/vnd.ag-ui.event+proto'

const PACKAGE = '@ag-ui/proto'

/** Undefined if the package is not installed. */
export async function loadProto(): Promise<ProtoModule | undefined> {
  try {
    return (await import(/* @vite-ignore */ PACKAGE)) as ProtoModule
  } catch {
    return undefined
  }
}

/** True only if the header names the type: a client that accepts anything gets text, which every client can read. */
export function wantsProto(accept: string | null): boolean {
  const quality = (type: string): number => {
    const found = accept?.split(',').find((range) => range.split(';')[0]?.trim().toLowerCase() === type)
    return found === undefined ? 0 : Number(/;\s*q=([\d.]+)/.exec(found)?.[1] ?? 1)
  }
  const wanted = quality(PROTO_TYPE)
  return wanted > 0 && wanted >= quality('text/event-stream')
}

/** Writes each event after its length in four bytes. */
export class ProtoWire implements Wire, Out {
  /** The type has no parameter, because clients compare the whole header. */
  readonly headers = { 'content-type': PROTO_TYPE, 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' }
  readonly #module: ProtoModule
  readonly #shape: Shape
  readonly #now: Clock | undefined
  #parts: Uint8Array[] = []
  #time: { readonly timestamp?: number } = {}

  constructor(module: ProtoModule, shape: Shape, now?: Clock) {
    this.#module = module
    this.#now = now
    this.#shape = shape
  }

  frame(write: (out: Out) => void): Uint8Array {
    this.#parts = []
    this.#time = this.#now ? { timestamp: this.#now() } : {}
    write(this)
    return joinedBytes(this.#parts)
  }

  text(messageId: string, delta: string): void {
    this.event({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
  }

  event(event: AgUiEvent): void {
    const shown = this.#shape(event)
    if (!shown) return
    const body = this.#module.encode({ ...shown, ...this.#time })
    const length = new Uint8Array(4)
    new DataView(length.buffer).setUint32(0, body.length)
    this.#parts.push(length, body)
  }
}
