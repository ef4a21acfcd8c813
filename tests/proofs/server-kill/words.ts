/** What a server in a process of its own is told to host. */
export interface Task {
  folder: string
  seed: number
  play: 'talk' | 'work' | 'queue'
  /** After a restart: the same session on the same port, for those who know the token. */
  sessionId?: string
  port?: number
  token?: string
  /** Each run of a tool leaves a line here. */
  marks: string
}

/** What it says. What arrived was said; what was said last may not arrive. */
export type Word = { type: 'loaded' } | { type: 'ready'; sessionId: string; port: number; token: string; url: string }
