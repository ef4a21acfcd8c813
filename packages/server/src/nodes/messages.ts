import type { Ack, WireStateValues } from '@tapetree/client/protocol'
import type { LiveText } from '@tapetree/session/view'
import type { RelayedCommand } from '../live/commands.ts'
import type { KnownText } from '../live/owner-link.ts'

/** A request from one node to another. */
export type NodeRequest =
  /** Shows a session on another node, and keeps showing it for a while. Sent again and again. */
  | { type: 'watch'; tenant: string; sessionId: string; known: KnownState; clients: WireStateValues['presence'] }
  | { type: 'command'; tenant: string; sessionId: string; command: RelayedCommand }

export type NodeReply =
  | { type: 'watched'; shown: ShownState }
  | { type: 'done'; ack: Ack }
  /** Not finished: send the command again. To builds that do not know this answer, it is the same as `elsewhere`. */
  | { type: 'working' }
  /** This node does not have the session open for writing. */
  | { type: 'elsewhere' }

/** What the watching node has already. */
export interface KnownState {
  /** Absent at first, and after the owner has opened the session again. */
  instance?: string
  rev: number
  /** How far it has the text in flight. */
  texts: readonly KnownText[]
}

/** What the watching node lacks. */
export interface ShownState {
  /** The open session of the owner. Its frames are published on a topic of this name. */
  instance: string
  head: number
  state: readonly { key: string; value: unknown; rev: number }[]
  texts: readonly LiveText[]
}

/** The topic of the frames of an open session: the same that its clients get. */
export function frameTopic(tenant: string, sessionId: string, instance: string): string {
  return JSON.stringify(['frames', tenant, sessionId, instance])
}

/** The topic of addresses that gave a wrong token. */
export const failuresTopic = JSON.stringify(['failures'])

/** The topic of changes of the tokens. Who hears of one reads them again. */
export const tokensTopic = JSON.stringify(['tokens'])

/** The topics of what counts towards the limits of tokens and tenants. */
export const requestsTopic = JSON.stringify(['requests'])
export const liveTopic = JSON.stringify(['live-sessions'])

/** The topic of changes in the list of a tenant: ids of sessions. */
export function listTopic(tenant: string): string {
  return JSON.stringify(['list', tenant])
}

export function encode(message: NodeRequest | NodeReply): Uint8Array {
  return Buffer.from(JSON.stringify(message))
}

/** Throws if it is not JSON. Nodes of one service trust each other, so the content is not checked. */
export function decode(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
}
