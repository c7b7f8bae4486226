import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import type { Principal } from './access.ts'

/** Offers agents that come over sockets of clients, because they have no address of their own. */
export interface Hosting {
  /** For a socket that may host agents. Nothing is kept for it until it does. */
  open(socket: HostingSocket): HostedBySocket
}

/** What hosting needs of a socket. */
export interface HostingSocket {
  /** Writes texts, each as one message. */
  send(texts: readonly string[]): Promise<void>
  /** An agent that it hosted has left. */
  left(): void
}

/** The agents that one socket hosts. */
export interface HostedBySocket {
  /** How many they are. */
  readonly size: number
  /**
   * Hosts the agent that a `session.create` names, and answers the event. False: the event asks for a session with an agent. Throws if it
   * asks to host one, and may not.
   */
  host(event: EventOf<'session.create'>, principal: Principal): boolean
  /** True if this is the session of an agent that is hosted here. */
  has(sessionId: string): boolean
  /** Who hosts the agent. */
  ownerOf(sessionId: string): Principal | undefined
  /** Takes an event of such a session: a newer token by its principal, other capabilities, its end. */
  handle(event: ClientEvent, principal: Principal): void
  /** A newer token for the whole socket. */
  refresh(principal: Principal): void
  /** Takes a message of a hosted agent, such as a piece of an answer. False: it is another event. */
  take(text: string): boolean
  /** The socket is gone. */
  close(): void
}
