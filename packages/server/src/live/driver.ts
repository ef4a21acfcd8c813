import type { Command, WireStateValues } from '@tapetree/client/protocol'
import type { LiveEvent } from '@tapetree/agent'
import type { Cause, Session } from '@tapetree/session'

/** What runs a session: our own agent, or a foreign one. Live sessions use only this interface. */
export interface SessionDriver {
  /** The log of everything that it does. */
  readonly session: Session
  readonly isBusy: boolean
  /** Whether commands of the user run. Absent: they never do. */
  readonly runsCommands?: boolean
  /**
   * Runs a command; resolves when its effect is durable. The line that it causes carries the cause. Rejects
   * with `RequestProblem` if it is not possible.
   */
  perform(command: Command, cause: Cause, rights?: CommandRights): Promise<unknown>
  /** Model, thinking level and mode, for screens. */
  config(): Record<string, unknown>
  /** Why the tools of the session cannot be used now. */
  readonly toolProblem?: string | undefined
  /** Set while another process writes the session: its log is followed, and commands are rejected. */
  readonly readOnly?: WireStateValues['read_only']
  /** Those that have been started for the session's folder. Absent: there are none. */
  languageServers?(): WireStateValues['language_servers']
  /** Available slash commands. */
  slashCommands(): readonly SlashCommand[]
  subscribe(listener: (event: DriverEvent) => void): () => void
  /** Whether a run was interrupted because its process died. */
  canResume(): Promise<boolean>
  /** Stops running work. */
  close(): Promise<void>
  /**
   * Closes it and leaves its run open, so that `resume` can continue it. Absent: `close` is used.
   */
  suspend?(): Promise<void>
}

/** Closes it and leaves open what runs, so that another one can continue it. */
export async function suspendDriver(driver: SessionDriver): Promise<void> {
  await (driver.suspend?.() ?? driver.close())
}

/** The rights of a command's sender. Absent: all. */
export interface CommandRights {
  /** False: it queues messages, but starts no run and runs no slash command. */
  mayDrive: boolean
}

export interface SlashCommand {
  name: string
  description: string
}

/** Live events only. Log lines are read from the log. */
export type DriverEvent = LiveEvent | { type: 'config_changed' }

/**
 * The owner that runs of a server record. A process that hosts a session for other purposes, such as a
 * terminal, uses another name.
 */
export const serverOwner = 'server'

/** Stands for a token if none is needed: in this process, or over its Unix socket. */
export const localUser = 'unix-socket'
