import { newId, type Content, type Session, type ToolUse } from '@tapetree/session'
import type { ToolStartRecord } from '@tapetree/session/format'
import { readDraft, removeDraft } from './draft.ts'
import { settleForeign } from './foreign-run.ts'
import type { Spent } from './limits.ts'
import type { OpenRun } from './open-run.ts'
import { checkCall, finishCall } from './tool-calls.ts'
import { answerCall, resultText } from './tool-results.ts'
import type { Tool } from '../tools/tool.ts'
import { factsOf, positionOf, type OpenRunFacts, type PathPosition } from './position.ts'

export type ToolStart = ToolStartRecord['toolStart']

/** How to resume a run whose process died, one item for each open matter. Planning changes nothing. */
export interface ResumePlan {
  runId: string
  matters: Matter[]
  /** How often this run was resumed without progress on the path. */
  fruitless: number
  /** Two resumes made no progress: a third one requires a person. */
  needsPerson: boolean
  /** The user stopped the run: its calls are answered and it ends without a request to the model. */
  wasStopped: boolean
  /** What the run used so far. */
  spent: Spent
}

export type Matter =
  /** The run continues from this entry. */
  | { type: 'unanswered'; entryId: string }
  /** The partial answer becomes an `attempt`; the request is sent again. */
  | { type: 'draft'; item: string; content: Content[] }
  | { type: 'call'; call: ToolUse; action: CallAction; start?: ToolStart }
  /** Still pending. */
  | { type: 'permission'; requestId: string; title: string }

/**
 * `run`: it never started. `reattach`: a command is still running, or ended, without us. `run-again`: it is safe to
 * repeat. `interrupted`: it may have taken effect and is not run again. `stopped`: the user stopped the answer that
 * makes it.
 */
export type CallAction = 'run' | 'reattach' | 'run-again' | 'interrupted' | 'stopped'

const interrupted = 'The process ended while this was running. It may have taken effect; it was not run again.'
const maxFruitless = 2

/** The plan for a session whose last run has no end. Undefined if there is nothing to resume. */
export async function planResume(session: Session, tools: readonly Tool[]): Promise<ResumePlan | undefined> {
  const position = await positionOf(session)
  const facts = await factsOf(session, position)
  if (!session.openRun && !isUnheard(position, facts)) return undefined
  const runId = session.openRun?.runId ?? position.entry?.message.runId ?? newId()
  // The stopped answer may belong to an earlier run, from which this one continued.
  const wasStopped = position.isStopped && position.entry?.message.runId === runId
  const fruitless = fruitlessResumes(session)
  return {
    runId,
    fruitless,
    needsPerson: fruitless >= maxFruitless,
    wasStopped,
    spent: facts.spent,
    matters: [
      ...(await draftMatter(session, facts)),
      ...position.openCalls.map((call) =>
        wasStopped ? stoppedMatter(call) : callMatter(call, facts.starts.get(call.id), tools),
      ),
      ...session.pendingPermissions.map(({ requestId, title }): Matter => ({ type: 'permission', requestId, title })),
      ...unanswered(position),
    ],
  }
}

/** The part of the plan for an open run that needs no line of its log. Undefined if no run is open. */
export function planOfOpenRun(session: Session): Pick<ResumePlan, 'runId' | 'needsPerson'> | undefined {
  const { openRun } = session
  return openRun ? { runId: openRun.runId, needsPerson: fruitlessResumes(session) >= maxFruitless } : undefined
}

/** How often in a row the open run was resumed and added nothing to the path. */
function fruitlessResumes({ openRunStart: start, leafId }: Session): number {
  return start?.resumes !== undefined && start.leafId === leafId ? (start.fruitless ?? 0) + 1 : 0
}

/** Carries out the plan for drafts and for calls that started. The turns of the run do the rest. */
export async function settleEvidence(plan: ResumePlan, open: OpenRun): Promise<void> {
  const { runId } = plan
  const { localFolder } = open.deps.session
  for (const matter of plan.matters) {
    if (matter.type !== 'draft') continue
    const { item, content } = matter
    const error = { kind: 'interrupted', message: 'The process ended during the answer.' }
    await open.append({ type: 'attempt', attempt: { runId, item, content, error } })
  }
  if (localFolder !== undefined) await removeDraft(localFolder)
  if (open.deps.foreign) {
    return settleForeign(open, plan.wasStopped ? resultText.stopped : resultText.unknownOutcome)
  }
  const started = plan.matters.filter((matter) => matter.type === 'call' && matter.action !== 'run')
  await Promise.all(started.map((matter) => settleCall(matter as Matter & { type: 'call' }, open)))
}

async function settleCall(matter: Matter & { type: 'call' }, open: OpenRun): Promise<void> {
  const { call, start } = matter
  if (matter.action === 'stopped') {
    await answerCall(call, { content: resultText.aborted, isError: true }, open)
    return
  }
  const tool = open.tools.get(call.name)
  // The tools may not have been known when the plan was made.
  const { action } = callMatter(call, start, tool ? [tool] : [])
  const given = start?.input ? { ...call, input: start.input } : call
  const checked = tool && checkCall(given, tool, open)
  const isKnown = tool && checked !== undefined && typeof checked !== 'string' && start
  if (!isKnown || action === 'interrupted') {
    await answerCall(call, { content: interrupted, isError: true }, open)
    return
  }
  await finishCall(given, { tool, checked, start }, open, async (toolContext) => {
    if (action === 'run-again' || !checked.reattach) return checked.run(toolContext)
    return checked.reattach(start, toolContext)
  })
}

function stoppedMatter(call: ToolUse): Matter {
  return { type: 'call', call, action: 'stopped' }
}

function callMatter(call: ToolUse, start: ToolStart | undefined, tools: readonly Tool[]): Matter & { type: 'call' } {
  if (!start) return { type: 'call', call, action: 'run' }
  const replay = tools.find(({ name }) => name === call.name)?.replay ?? 'never'
  const actions = { safe: 'run-again', reattach: 'reattach', never: 'interrupted' } as const
  return { type: 'call', call, action: actions[replay], start }
}

async function draftMatter({ localFolder }: Session, { ended }: OpenRunFacts): Promise<Matter[]> {
  const draft = localFolder === undefined ? undefined : await readDraft(localFolder)
  if (!draft || ended.has(draft.item)) return []
  return [{ type: 'draft', ...draft }]
}

function unanswered({ openCalls, isSettled, entry }: PathPosition): Matter[] {
  return openCalls.length === 0 && !isSettled && entry ? [{ type: 'unanswered', entryId: entry.id }] : []
}

/** True for a delivered message whose run never began because the process died in between. */
function isUnheard({ entry, openCalls }: PathPosition, { hasRunSince }: OpenRunFacts): boolean {
  return entry?.message.role === 'user' && openCalls.length === 0 && !hasRunSince
}
