import type { Socket } from '../../core/ports/transport.ts'
import type { Told } from './model.ts'

/** Events for the client, gathered until they are written together. */
export class Outbox {
  readonly #socket: Socket
  /** Event ids are a prefix and a number: a random id would cost more than the delta that carries it. */
  readonly #prefix: string
  #count = 0
  #frames: string[] = []

  constructor(socket: Socket, prefix: string) {
    this.#socket = socket
    this.#prefix = `event_${prefix}_`
  }

  tell({ type, ...fields }: Told): void {
    this.#frames.push(JSON.stringify({ type, event_id: `${this.#prefix}${++this.#count}`, ...fields }))
  }

  /** For events that differ only in their `delta`: the rest is turned into JSON once. */
  deltas({ type, ...fields }: Told): (delta: string) => void {
    const head = `${JSON.stringify({ type }).slice(0, -1)},"event_id":"${this.#prefix}`
    const tail = `",${JSON.stringify(fields).slice(1, -1)},"delta":`
    return (delta) => this.#frames.push(`${head}${++this.#count}${tail}${JSON.stringify(delta)}}`)
  }

  /** Resolves when more may be sent. */
  flush(): Promise<void> {
    const frames = this.#frames
    if (frames.length === 0) return Promise.resolve()
    this.#frames = []
    return this.#socket.send(frames)
  }
}
