import type { Session, ToolStartRecord } from '@tapetree/session'
import { readDraft, removeDraft } from './draft.ts'
import { Requests } from '../permissions/requests.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { factsOf, positionOf } from './position.ts'
import { SharedSession } from './run-slot.ts'
import { hostname } from 'node:os'
import { attach, type Command } from '../tools/commands/command.ts'
import { reportOutcome, reportRunning } from '../tools/commands/report.ts'
import type { ToolOutput } from '../tools/tool.ts'

/**
 * Closes an interrupted run that is not to be resumed: every open call is answered on its path, with what is known of it. Rejects with
 * `session-busy` if the run goes on in this process.
 */
export async function abandonRun(session: Session): Promise<void> {
  const shared = SharedSession.of(session)
  await shared.alone(async () => {
    if (shared.occupant) throw shared.busy()
    await closeInterruptedRun(session)
  })
}

/** The same for a caller that has the lock of the session and has seen that nothing runs. */
export async function closeInterruptedRun(session: Session): Promise<void> {
  const run = session.openRun
  if (!run) return
  // The next line that can be stored takes this reason away, so it is kept before anything is written.
  const failure = session.storageFailure
  const position = await positionOf(session)
  const { starts } = await factsOf(session, position)
  const jobs = new Jobs()
  for (const call of position.openCalls) {
    const start = starts.get(call.id)
    const toolResult = { toolUseId: call.id, ...(await outputOfAbandoned(start, { session, jobs })) }
    await session.appendMessage('tool', [{ type: 'tool_result', toolResult }], { with: { runId: run.runId } })
    // The result is durable: what could not be tidied up is in nobody's way.
    if (start) await jobs.removeSpool(start, session.localFolder).catch(() => undefined)
  }
  // Somebody may be answering just now: a question has one answer.
  const requests = SharedSession.of(session).requests ?? new Requests(session)
  for (const { requestId } of requests.pending) await requests.answer({ requestId, outcome: 'cancelled' })
  await keepDraft(session, run.runId)
  const reason = failure && { reason: failure.code }
  await session.append({ type: 'run_end', runEnd: { runId: run.runId, outcome: 'abandoned', ...reason } })
}

/** What an answer had said is not lost with its run. */
async function keepDraft(session: Session, runId: string): Promise<void> {
  const { localFolder } = session
  if (localFolder === undefined) return
  const draft = await readDraft(localFolder)
  const isInLog = draft && (await session.getEntry(draft.item).catch(() => undefined))
  if (draft && !isInLog) {
    const error = { kind: 'interrupted', message: 'The process ended while the answer was coming in.' }
    await session.append({ type: 'attempt', attempt: { runId, ...draft, error } })
  }
  await removeDraft(localFolder)
}

type ToolStart = ToolStartRecord['toolStart']

interface Place {
  session: Session
  jobs: Jobs
}

const notBegun: ToolOutput = { content: 'Not run: the run was left behind before this began.', isError: true }
const interrupted: ToolOutput = {
  content: 'The process ended while this was running, and the run was left behind. It may have taken effect.',
  isError: true,
}

/** What the model is told of a call whose run nobody goes on with. Nothing is run, and nothing is stopped. */
async function outputOfAbandoned(start: ToolStart | undefined, place: Place): Promise<ToolOutput> {
  if (!start) return notBegun
  const folder = start.spool === undefined ? undefined : place.jobs.folderOf(start, place.session.localFolder)
  return folder === undefined ? interrupted : outputOfCommand(attach(folder), start, place)
}

/** A command goes on without its run, and may have ended by itself since. */
async function outputOfCommand(command: Command, start: ToolStart, { session, jobs }: Place): Promise<ToolOutput> {
  const state = await command.state()
  if (state.type === 'ended') return reportOutcome(command, state, session)
  if (start.host !== hostname()) return interrupted
  if (state.type === 'lost') return reportOutcome(command, state, session)
  if (state.type === 'unclaimed' && command.forestall()) return notBegun
  const jobId = await jobs.keep(command)
  const words = (nextOffset: number): string =>
    'It was still running when the run was left behind, and may have taken effect. It goes on in the background as ' +
    `${jobId}. Read on with job_output, jobId ${jobId}, since ${nextOffset}; end it with job_kill.`
  return { ...(await reportRunning(command, words, session)), isError: true }
}
