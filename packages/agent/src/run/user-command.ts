import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import type { BashExecution, Cause, Session } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import { attach, type Command } from '../tools/commands/command.ts'
import type { CommandExit } from '../tools/commands/exit-file.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { currentBootId } from '../tools/commands/process-table.ts'
import { reportRunning } from '../tools/commands/report.ts'
import { showOutput } from '../tools/commands/shown-output.ts'
import { messageOf } from '../util/message-of.ts'

export type BashStart = Extract<RecordDraft, { type: 'bash_start' }>['bashStart']

/** How a command of the user ended, or what is known about that. */
export type BashOutcome = Omit<BashExecution, 'command' | 'excludeFromContext'>

type AppendEntry = (draft: EntryDraft, cause?: Cause) => Promise<unknown>

export const bashTexts = {
  unknown:
    'Outcome unknown: the process ended while this command was running. It may have taken effect. It was not run again.',
  notBegun: 'Not run: the process ended before this command started.',
  notStarted: (error: unknown) => `The command could not be started: ${messageOf(error)}`,
  failed: (error: unknown) => `Outcome unknown: ${messageOf(error)}. The command may have taken effect.`,
  continues: (jobId: string, nextOffset: number) =>
    'The process ended while this command was running. It continues in the background as ' +
    `${jobId}. Read more with job_output, jobId ${jobId}, since ${nextOffset}; stop it with job_kill.`,
}

/** The commands of the user that run in this process, by session and message. */
const running = new WeakMap<object, Set<string>>()

/** Until the returned function is called, this process is responsible for the command. */
export function holdCommand({ sharedKey }: Session, messageId: string): () => void {
  const held = running.get(sharedKey) ?? new Set()
  running.set(sharedKey, held.add(messageId))
  return () => void held.delete(messageId)
}

export function isHeld({ sharedKey }: Session, messageId: string): boolean {
  return running.get(sharedKey)?.has(messageId) ?? false
}

/** The message that ends a command of the user. */
export function bashMessage(
  { messageId: id, command, excludeFromContext }: BashStart,
  outcome: BashOutcome,
): EntryDraft & { message: { bashExecution: BashExecution } } {
  const bashExecution = { command, ...outcome, ...(excludeFromContext && { excludeFromContext }) }
  return { type: 'message', id, message: { role: 'bashExecution', content: [], bashExecution } }
}

/** The output of a command that has ended, and how it ended. `exit` is undefined if that was not recorded. */
export async function outcomeOf(
  command: Command,
  exit: CommandExit | undefined,
  session: Session,
): Promise<BashOutcome> {
  const shown = await showOutput(await command.output(), 0, session)
  return {
    output: exit?.cause === 'not-started' ? bashTexts.notStarted(exit.error) : shown,
    ...(typeof exit?.code === 'number' && { exitCode: exit.code }),
    ...(exit?.cause === 'stopped' && { cancelled: true }),
  }
}

/**
 * Appends the message of each command of the user whose process has died. Starts nothing. A command that still runs
 * becomes a job.
 */
export async function endInterruptedCommands(session: Session, append: AppendEntry): Promise<void> {
  for (const { cause, ...start } of session.openCommands) {
    if (isHeld(session, start.messageId)) continue
    const release = holdCommand(session, start.messageId)
    try {
      const jobs = new Jobs()
      await append(bashMessage(start, await outcomeOfInterrupted(start, session, jobs)), cause)
      // The message is durable: a failed cleanup does no harm.
      await jobs.removeSpool(start, session.localFolder).catch(() => undefined)
    } finally {
      release()
    }
  }
}

async function outcomeOfInterrupted(start: BashStart, session: Session, jobs: Jobs): Promise<BashOutcome> {
  const folder = start.host === hostname() ? jobs.folderOf(start, session.localFolder) : undefined
  if (folder === undefined || !existsSync(folder)) return { output: bashTexts.unknown }
  const command = attach(folder)
  const state = await command.state()
  if (state.type === 'ended') return outcomeOf(command, state.exit, session)
  const isSameBoot = start.bootId === currentBootId()
  if (isSameBoot && command.forestall()) return { output: bashTexts.notBegun }
  if (isSameBoot && state.type === 'running') return continuing(command, start, { session, jobs })
  const { output } = await outcomeOf(command, undefined, session)
  return { output: output === '' ? bashTexts.unknown : `${output}\n\n[${bashTexts.unknown}]` }
}

async function continuing(
  command: Command,
  start: BashStart,
  { session, jobs }: { session: Session; jobs: Jobs },
): Promise<BashOutcome> {
  const jobId = await jobs.keep(command, start.command)
  const { content } = await reportRunning(command, (next) => bashTexts.continues(jobId, next), session)
  return { output: typeof content === 'string' ? content : '' }
}
