import { UampError } from '../../protocol/errors.ts'
import { SERVER_EVENTS, type Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import { Channel } from './channel.ts'
import { checkEvent, checkGenerator, drafted } from '../engine/check-draft.ts'
import type { Handler, HandlerTurn, Observer, RoutedEvent } from '../ports/skill.ts'
import type { Logger } from '../ports/transport.ts'

/** How many handlers an event may pass through. */
const TTL = 10
/** How many events an observer may lag behind before it loses the oldest. */
const OBSERVED = 256

/** Where an event goes: to a handler, to the client, to the router itself, or nowhere. */
type Target = Handler | 'client' | 'system' | 'nowhere'

interface Resolved {
  readonly target: Target
  readonly watched: boolean
}

/** For an event that its handler does not declare: nobody gets it. */
const UNDECLARED: Resolved = { target: 'nowhere', watched: false }

/** The handlers that an event came through, and how many more it may pass. */
interface Hop {
  readonly seen: readonly Handler[]
  readonly ttl: number
  /** Takes the event, whatever its type. */
  readonly to?: Handler | undefined
}

export interface RouterOptions {
  readonly handlers: readonly Handler[]
  readonly observers?: readonly Observer[]
  readonly log?: Logger
}

/**
 * Routes events to handlers by the types they subscribe to (UAMP events §12). Order: time to live, observers, `system.*`, exact
 * type, pattern, the client if it understands the type, `*`; any other event is unroutable. So is one that its handler's `produces` does not name. An event never returns to a handler it
 * came through. Routes are resolved once per type and call of a handler, not per delta.
 */
export class Router {
  readonly #handlers: readonly Handler[]
  #observers: readonly { readonly observer: Observer; readonly queue: Channel<RoutedEvent> }[]
  readonly #log: Logger
  readonly #told = new WeakSet<object>()

  constructor({ handlers, observers = [], log = () => undefined }: RouterOptions) {
    this.#handlers = [...handlers].sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0))
    this.#log = log
    this.#observers = observers.map((observer) => ({ observer, queue: new Channel(OBSERVED) }))
    for (const { observer, queue } of this.#observers) void this.#observe(observer, queue)
  }

  /** The names of the handlers. */
  get names(): readonly string[] {
    return this.#handlers.map(({ name }) => name)
  }

  /** A router with more handlers and observers. This one goes on as it is, and its observers see the events of both. */
  with({ handlers, observers }: Pick<RouterOptions, 'handlers' | 'observers'>): Router {
    const router = new Router({ handlers: [...this.#handlers, ...handlers], ...(observers && { observers }), log: this.#log })
    router.#observers = [...this.#observers, ...router.#observers]
    return router
  }

  /**
   * Routes an event, and all events that handlers make of it; yields those that reach the client. `to` names the handler that takes the
   * first event, whatever it subscribes to.
   */
  route(event: RoutedEvent, turn: HandlerTurn, to?: string): AsyncGenerator<Draft, void> {
    const handler = to === undefined ? undefined : this.#handlers.find(({ name }) => name === to)
    if (to !== undefined && !handler)
      throw new UampError('invalid_request', `No handler is called "${to}": there are ${this.names.join(', ')}`)
    return this.#deliver(event, turn, { seen: [], ttl: TTL, to: handler })
  }

  /** Ends the observers once they have seen everything. */
  close(): void {
    for (const { queue } of this.#observers) queue.close()
  }

  async *#deliver(event: RoutedEvent, turn: HandlerTurn, hop: Hop): AsyncGenerator<Draft, void> {
    if (hop.ttl <= 0) {
      throw new UampError('internal', 'An event went in circles', { cause: new Error(`TTL exceeded by "${event.type}"`) })
    }
    const { target: usual, watched } = this.#resolve(event.type, hop.seen)
    const target = hop.to ?? usual
    if (watched) this.#show(event)
    if (target === 'client') yield event as Draft
    else if (target === 'system') this.#system(event)
    else if (target === 'nowhere') this.#unroutable(event, turn)
    else yield* this.#process(target, event, { turn, hop })
  }

  async *#process(handler: Handler, event: RoutedEvent, { turn, hop }: { turn: HandlerTurn; hop: Hop }): AsyncGenerator<Draft, void> {
    const next: Hop = { seen: [...hop.seen, handler], ttl: hop.ttl - 1 }
    const { name, produces } = handler
    const routes = new Map<string, Resolved>()
    try {
      for await (const given of checkGenerator(handler.process(event, turn))) {
        const output = drafted(given)
        checkEvent(output)
        if (isStop(output)) return
        let route = routes.get(output.type)
        if (!route) {
          route = this.#resolve(output.type, next.seen)
          if (route.target !== 'system' && produces?.includes(output.type) === false) {
            this.#log('warn', 'A handler made an event that its `produces` does not name', {
              handler: name,
              type: output.type,
              ...turn.trace?.fields,
            })
            route = UNDECLARED
          }
          routes.set(output.type, route)
        }
        if (route === UNDECLARED) this.#show({ type: 'system.unroutable', original_event: output })
        // The most frequent case needs no other generator.
        else if (route.target === 'client' && !route.watched) yield output as Draft
        else yield* this.#deliver(output, turn, next)
      }
    } catch (thrown) {
      this.#failed(thrown)
      throw thrown
    }
  }

  /** Shows a failure to observers once, although it passes through several handlers; the turn then fails with it. */
  #failed(thrown: unknown): void {
    const error = UampError.from(thrown)
    const failure = thrown instanceof Error ? thrown : error
    if (this.#told.has(failure)) return
    this.#told.add(failure)
    this.#show({ type: 'system.error', error: error.toBody() })
  }

  #resolve(type: string, seen: readonly Handler[]): Resolved {
    return { target: this.#find(type, seen), watched: this.#observers.some(({ observer }) => watches(observer, type)) }
  }

  #find(type: string, seen: readonly Handler[]): Target {
    if (type.startsWith('system.')) return 'system'
    const open = this.#handlers.filter((handler) => !seen.includes(handler))
    const exact = open.find(({ subscribes }) => subscribes.includes(type))
    const handler = exact ?? open.find(({ subscribes }) => matches(subscribes, type))
    if (handler) return handler
    if (SERVER_EVENTS.has(type)) return 'client'
    return open.find(({ subscribes }) => subscribes.includes('*')) ?? 'nowhere'
  }

  #system(event: RoutedEvent): void {
    if (event.type === 'system.ping') this.#show({ type: 'system.pong' })
    if (event.type !== 'system.error') return
    const error = 'error' in event && isRecord(event.error) ? event.error : {}
    throw new UampError('internal', typeof error['message'] === 'string' ? error['message'] : 'The agent failed')
  }

  #unroutable(event: RoutedEvent, { trace }: HandlerTurn): void {
    this.#log('warn', 'No handler takes this event', { type: event.type, ...trace?.fields })
    this.#show({ type: 'system.unroutable', original_event: event })
  }

  #show(event: RoutedEvent): void {
    for (const { observer, queue } of this.#observers) {
      if (watches(observer, event.type) && !queue.offer(event))
        this.#log('warn', 'An observer is too slow and lost an event', { observer: observer.name })
    }
  }

  async #observe(observer: Observer, queue: Channel<RoutedEvent>): Promise<void> {
    for await (const event of queue) {
      try {
        await observer.observe(event)
      } catch (error) {
        this.#log('error', 'An observer failed', { observer: observer.name, error })
      }
    }
  }
}

function matches(subscribes: readonly (string | RegExp)[], type: string): boolean {
  return subscribes.some((wanted) => (typeof wanted === 'string' ? wanted === type : wanted.test(type)))
}

function watches({ subscribes }: Observer, type: string): boolean {
  return matches(subscribes, type) || subscribes.includes('*')
}

function isStop({ type }: RoutedEvent): boolean {
  return type === 'system.stop' || type === 'system.cancel'
}
