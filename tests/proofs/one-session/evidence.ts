import type { WhenBusy } from './owners.ts'

/** A message that somebody sent, and what they were told. */
export interface SentMessage {
  text: string
  whenBusy: WhenBusy
  owner: number
  /** `unknown`: whoever sent it died or closed before an answer came. */
  told: 'started' | 'queued' | 'steered' | 'busy' | 'unknown'
  runId?: string
}

/** Something that may end a run: when it was asked for and when it was over, as the last line of the log at that time. */
export interface Stop {
  /** `kill` ends every owner of a process, `suspend` and `close` one of them, `abort` whatever goes on. */
  type: 'abort' | 'close' | 'suspend' | 'kill'
  owner: number
  from: number
  to: number
}

/** All that is known of a history besides its log. */
export interface Evidence {
  messages: SentMessage[]
  stops: Stop[]
  /** Lines of the ledger: the name of a tool and the id of its call. */
  ledger: string[]
}
