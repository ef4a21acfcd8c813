import type { Command, WireStateValues } from '@tapetree/client'
import type { LiveEvent } from '@tapetree/agent'
import type { Cause, Session } from '@tapetree/session'

/** What runs a session: our own agent, or a foreign one. A live session knows it by this alone. */
export interface SessionDriver {
  /** The log that everything it does is in. */
  readonly session: Session
  readonly isBusy: boolean
  /**
   * Carries a command out; resolves when its effect is durable. The line that is its effect carries the cause. Rejects with
   * `ProblemError` where it cannot be done.
   */
  perform(command: Command, cause: Cause, rights?: CommandRights): Promise<unknown>
  /** Model, thinking level, mode: what a screen shows and may change. */
  config(): Record<string, unknown>
  /** Set while another process writes the session: its log is followed, and commands are refused. */
  readonly readOnly?: WireStateValues['read_only']
  /** What may be typed behind a slash. */
  slashCommands(): readonly SlashCommand[]
  subscribe(listener: (event: DriverEvent) => void): () => void
  /** Whether a run was left behind by a process that died. */
  canResume(): Promise<boolean>
  /** Ends what runs. */
  close(): Promise<void>
  /** For a server that goes down: closes it and leaves its run open, so that `resume` can go on with it. Absent: `close` is all there is. */
  suspend?(): Promise<void>
}

/** What the sender of a command may do. Absent: everything. */
export interface CommandRights {
  /** False: it leaves messages, but starts no run and runs no slash command. */
  mayDrive: boolean
}

export interface SlashCommand {
  name: string
  description: string
}

/** Live only. Lines of the log are not among them: they come from the log. */
export type DriverEvent = LiveEvent | { type: 'config_changed' }

/** What the runs of a server say of who hosts them. One that hosts a session for somebody else, as a terminal does, says another name. */
export const serverOwner = 'server'

/** Stands for a token where none is needed: in this process, or over its Unix socket. */
export const localUser = 'unix-socket'
