/** What a server in a process of its own is told. */
export type Order =
  | ({ type: 'serve' } & NodeOptions)
  /** It answers with a status. */
  | { type: 'look' }

export interface NodeOptions {
  /** Its name in the service, in the database and in the ledger. */
  node: string
  /** A URL, or the servers of a database that Patroni manages: one of them leads. */
  database: string | readonly { address: string; port: number; restPort: number }[]
  busUrl: string
  /** What belongs to its machine. */
  folder: string
  /** Each start of a tool leaves a line here: the time, the node and the call. */
  ledger: string
  seed: number
  /** Default: any port of loopback. */
  at?: { host: string; port: number }
}

/** What it says. */
export type Word =
  | { type: 'loaded' }
  | { type: 'serving'; url: string }
  /** How many of its sessions are at work. */
  | { type: 'status'; working: number }

/** What a prompt makes the model do: call a tool so often. */
export interface Job {
  /** Makes the ids of calls unique. */
  tag: string
  calls: number
  /** How long the model speaks and how long a tool runs, about. */
  stepMs: number
}

export function promptOf({ tag, calls, stepMs }: Job): string {
  return `work ${tag} ${calls} ${stepMs}`
}

/** What `promptOf` has made. */
export function jobOf(prompt: string): Job | undefined {
  const [, tag, calls, stepMs] = /^work (\S+) (\d+) (\d+)/.exec(prompt) ?? []
  return tag === undefined ? undefined : { tag, calls: Number(calls), stepMs: Number(stepMs) }
}

/** More calls than a proof can wait for. */
export const endless = 1_000_000
