import type { Durability } from '@tapetree/session'

/** What the proof tells one of its processes to do. */
export type Order =
  | { type: 'open'; tenure: string; at: Place; lock: LockUse; durability: Durability; traps: Trap[] }
  /** A new session, which its maker then writes. */
  | { type: 'create'; tenure: string; at: Place; lock: LockUse; durability: Durability; traps: Trap[] }
  | { type: 'append'; tenure: string; count: number; size: number; together: boolean }
  | { type: 'set-traps'; traps: Trap[] }
  | { type: 'close'; tenure: string }

export interface Place {
  folder: string
  sessionId: string
}

/** One kind of lock only, both in their usual order, or none: the writer insists. */
export type LockUse = 'ofd' | 'sqlite' | 'usual' | 'defeated'

/**
 * What happens at the next system call of that name on the log, or on a copy that is made of its end; each once and in the order
 * given. A process that stops itself says so and waits for SIGCONT.
 */
export type Trap =
  | 'short-write'
  | 'stop-before-write'
  | 'stop-after-write'
  | 'stop-after-read'
  | 'stop-before-sync'
  | 'stop-before-sync-of-copy'

export type Answer =
  /** `knownSize` is how long the log was when it was last looked at: what lies before it, this writer has seen. */
  | { type: 'opened'; isWriter: boolean; knownSize: number }
  /** The codes of what was not acknowledged. What was has been told line by line. */
  | { type: 'appended'; refusals: string[] }
  | { type: 'done' }
  | { type: 'failed'; code: string; message: string }

export type Report =
  | { type: 'answer'; number: number; answer: Answer }
  | { type: 'acknowledged'; tenure: string; id: string }
