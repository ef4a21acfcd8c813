import type { Ack, WireStateValues } from '@tapetree/client/protocol'
import type { LiveText } from '@tapetree/session/view'
import type { RelayedCommand } from './commands.ts'

/** The connection to the node that owns a session. */
export interface OwnerLink {
  /** The name of that node. */
  readonly node: string
  /** Asks for what is missing, for example because a client here has come or gone. */
  renew(): void
  /**
   * Undefined if that node does not own the session any more; `working` if it has not finished the command: send it again.
   * Rejects if it does not answer.
   */
  perform(command: RelayedCommand): Promise<Ack | 'working' | undefined>
  close(): void
}

/** Connects a session with the node that owns it. */
export type SessionRelay = (sessionId: string, node: string, target: RelayTarget) => OwnerLink

/** The side of the clients of a session that another node owns. */
export interface RelayTarget {
  /** How far it has the text in flight. */
  texts(): readonly KnownText[]
  takeText(text: LiveText): void
  takeState(values: Partial<WireStateValues>): void
  /** The log has lines up to this one. */
  takeHead(seq: number): void
  /** The clients that are connected here. */
  clients(): WireStateValues['presence']
  /** The owner may be another one now. */
  onLost(): void
}

export interface KnownText extends Pick<LiveText, 'item' | 'part' | 'kind'> {
  end: number
}
