import type { Durability } from '@tapetree/session'

/** An append whose promise resolved: from here on it may not be lost. */
export interface Acknowledgement {
  session: string
  id: string
  seq: number
  durability: Durability
  /** Of what the caller gave, not of what was stored. */
  fingerprint: string
}

/** What the writer tells on its stdout, one line of JSON each. */
export type Report =
  | { type: 'ready' }
  | { type: 'writing' }
  | ({ type: 'acknowledged' } & Acknowledgement)
  | { type: 'failed'; reason: string }

export interface WriterOptions {
  folder: string
  seed: number
  /** Sessions to go on with, by store; new ones are made where there are fewer than it wants. */
  sessions: Record<Durability, string[]>
}

/** A store for each durability, side by side. */
export function storeFolder(folder: string, durability: Durability): string {
  return `${folder}/${durability}`
}
