import { hostname } from 'node:os'
import type { Session, ToolStartRecord } from '@tapetree/session'
import { attach, type Command } from '../tools/commands/command.ts'
import { reportOutcome, reportRunning } from '../tools/commands/report.ts'
import type { Jobs } from '../tools/commands/jobs.ts'
import type { ToolOutput } from '../tools/tool.ts'

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
export async function outputOfAbandoned(start: ToolStart | undefined, place: Place): Promise<ToolOutput> {
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
