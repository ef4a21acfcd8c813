import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import type { ToolStartRecord } from '@tapetree/session/format'
import { readDraft, removeDraft } from './draft.ts'
import { Requests } from '../permissions/requests.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { foreignApi } from './foreign-agent.ts'
import { factsOf, positionOf } from './position.ts'
import { SharedSession } from './run-slot.ts'
import { resultText } from './tool-results.ts'
import { endInterruptedCommands } from './user-command.ts'
import { hostname } from 'node:os'
import { attach, type Command } from '../tools/commands/command.ts'
import { reportOutcome, reportRunning } from '../tools/commands/report.ts'
import type { ToolOutput } from '../tools/tool.ts'

/**
 * Closes an interrupted run that will not be resumed, and the runs of its subagents if `store` holds their sessions. Every open call gets a
 * result on its path that says what is known about it. Rejects with `session-busy` if the run is still active in this process.
 */
export async function abandonRun(session: Session, options: { store?: SessionStore } = {}): Promise<void> {
  const shared = SharedSession.of(session)
  await shared.alone(async () => {
    if (shared.occupant) throw shared.busy()
    await closeInterruptedRun(session, options)
  })
}

/** Like `abandonRun`, for a caller that holds the lock of the session and has checked that nothing is running. */
export async function closeInterruptedRun(session: Session, { store }: { store?: SessionStore } = {}): Promise<void> {
  const run = session.openRun
  if (!run) return
  // The next line that can be stored clears this reason, so read it before writing anything.
  const failure = session.storageFailure
  const position = await positionOf(session)
  const { starts } = await factsOf(session, position)
  const jobs = new Jobs()
  for (const call of position.openCalls) {
    const start = starts.get(call.id)
    if (store && start?.childSession !== undefined) await abandonSubagent(start.childSession, store)
    const isForeign = position.entry?.message.api === foreignApi
    const output = isForeign ? unknownOutcome : await outputOfAbandoned(start, { session, jobs })
    const toolResult = { toolUseId: call.id, ...output }
    await session.appendMessage('tool', [{ type: 'tool_result', toolResult }], { with: { runId: run.runId } })
    // The result is durable: a failed cleanup does no harm.
    if (start) await jobs.removeSpool(start, session.localFolder).catch(() => undefined)
  }
  await endInterruptedCommands(session, (draft, cause) => session.append(draft, cause && { cause }))
  // An answer may arrive at the same time: a request has only one answer.
  const requests = SharedSession.of(session).requests ?? new Requests(session)
  for (const { requestId } of requests.pending) await requests.answer({ requestId, outcome: 'cancelled' })
  await keepDraft(session, run.runId)
  const reason = failure && { reason: failure.code }
  await session.append({ type: 'run_end', runEnd: { runId: run.runId, outcome: 'abandoned', ...reason } })
}

/** One that cannot be opened, or that someone works with, stays as it is. */
async function abandonSubagent(sessionId: string, store: SessionStore): Promise<void> {
  try {
    await using child = await store.open(sessionId)
    if (child.readOnlyReason === undefined) await abandonRun(child, { store })
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
  }
}

/** Keeps the text of a partial answer as an `attempt`. */
async function keepDraft(session: Session, runId: string): Promise<void> {
  const { localFolder } = session
  if (localFolder === undefined) return
  const draft = await readDraft(localFolder)
  const isInLog = draft && (await session.getEntry(draft.item).catch(() => undefined))
  if (draft && !isInLog) {
    const error = { kind: 'interrupted', message: 'The process ended during the answer.' }
    await session.append({ type: 'attempt', attempt: { runId, ...draft, error } })
  }
  await removeDraft(localFolder)
}

type ToolStart = ToolStartRecord['toolStart']

interface Place {
  session: Session
  jobs: Jobs
}

const unknownOutcome: ToolOutput = { content: resultText.unknownOutcome, isError: true }
const notBegun: ToolOutput = { content: 'Not run: the run was abandoned before this call started.', isError: true }
const interrupted: ToolOutput = {
  content: 'The process ended while this was running, and the run was abandoned. It may have taken effect.',
  isError: true,
}

/** The result of a call whose run is abandoned. Starts and stops nothing. */
async function outputOfAbandoned(start: ToolStart | undefined, place: Place): Promise<ToolOutput> {
  if (!start) return notBegun
  const folder = start.spool === undefined ? undefined : place.jobs.folderOf(start, place.session.localFolder)
  return folder === undefined ? interrupted : outputOfCommand(attach(folder), start, place)
}

/** A command continues without its run, and may have ended by itself since. */
async function outputOfCommand(command: Command, start: ToolStart, { session, jobs }: Place): Promise<ToolOutput> {
  const state = await command.state()
  if (state.type === 'ended') return reportOutcome(command, state, session)
  if (start.host !== hostname()) return interrupted
  if (state.type === 'lost') return reportOutcome(command, state, session)
  if (state.type === 'unclaimed' && command.forestall()) return notBegun
  const jobId = await jobs.keep(command)
  const text = (nextOffset: number): string =>
    'It was still running when the run was abandoned, and may have taken effect. It continues in the background as ' +
    `${jobId}. Read more with job_output, jobId ${jobId}, since ${nextOffset}; stop it with job_kill.`
  return { ...(await reportRunning(command, text, session)), isError: true }
}
