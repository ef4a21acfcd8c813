import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Carries the live part of sessions between the nodes of a service: text in flight, commands, changes of the list. It
 * holds no state. What it loses is read from the log or requested again, so nothing durable depends on it.
 */
export interface SessionBus {
  /** The name of this node. No two nodes of a service have the same. */
  readonly node: string
  /** Of a bus whose nodes connect to the HTTP servers of each other. */
  readonly door?: BusDoor
  /**
   * Sends a message to the subscribers on all other nodes. Messages on one topic arrive in the order in which they were
   * published, each at most once. Throws a `RangeError` if the message has more than `maxMessageBytes`.
   */
  publish(topic: string, message: Uint8Array): void
  /**
   * Calls the listener for every message that other nodes publish on the topic after this resolves. The returned function
   * ends it.
   */
  subscribe(topic: string, listener: MessageListener): Promise<() => void>
  /**
   * Sends a request to another node, or to this one, and resolves with the answer. Rejects with `BusError`: `unreachable`
   * if the request was certainly not received, `no-answer` if the other node may have acted on it.
   */
  request(node: string, message: Uint8Array, options?: RequestOptions): Promise<Uint8Array>
  /** Answers the requests to this node. There is one handler; if it throws, the requester gets `no-answer`. */
  answer(handler: RequestHandler): void
  /**
   * Calls the listener after an interruption in which messages may have been lost, of this node or of another one.
   * Subscriptions continue by themselves.
   */
  onGap(listener: () => void): () => void
  /** Open requests are rejected, and nothing is delivered after it resolves. */
  close(): Promise<void>
}

export interface BusDoor {
  /** The path of the requests that it takes. They need no token: the nodes prove to each other that they know a secret. */
  readonly path: string
  /** Takes an upgrade request of another node. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Connects to the others, which connect to this node as well. Called when the HTTP server listens. */
  connect(): Promise<void>
}

export type MessageListener = (message: Uint8Array, from: string) => void
export type RequestHandler = (message: Uint8Array, from: string) => Promise<Uint8Array>

export interface RequestOptions {
  /** How long to wait for the answer. Default: 10 s. */
  timeoutMs?: number
}

export const defaultRequestMs = 10_000

/** The largest message, request or answer. */
export const maxMessageBytes = 32 * 1024 * 1024

export type BusErrorCode = 'unreachable' | 'no-answer' | 'closed'

export class BusError extends Error {
  override readonly name = 'BusError'
  readonly code: BusErrorCode

  constructor(code: BusErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

export function requireSize(message: Uint8Array): void {
  if (message.length <= maxMessageBytes) return
  throw new RangeError(
    `A message of ${message.length} bytes is larger than ${maxMessageBytes}, the most that a bus takes.`,
  )
}
