import type { OwnerKind, SessionOwner } from './owners.ts'

/** What an owner can be asked for by another process. */
export type OwnerMethod = Exclude<keyof SessionOwner, 'kind' | 'session' | 'isBusy'>

/** What the parent tells a process with owners in it. Each has one reply. */
export type Order = { id: number } &
  /** A history begins: where the session is. */
  (
    | { type: 'begin'; folder: string; sessionId: string; seed: number; prefix: string }
    | { type: 'open'; seat: number; kind: OwnerKind }
    | { type: 'call'; seat: number; method: OwnerMethod; args: unknown[] }
    | { type: 'look'; seat: number }
    /** The history is over: nothing of it stays open. */
    | { type: 'end' }
  )

export interface Sight {
  isBusy: boolean
  waiting: number
  /** A question that waits for its answer. */
  question: string | undefined
}

/** An order without its number. */
export type OrderBody = Order extends infer Each ? (Each extends Order ? Omit<Each, 'id'> : never) : never

export type Reply = { id: number } & ({ ok: true; result?: unknown } | { ok: false; code: string; message: string })
