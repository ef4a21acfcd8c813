import type { PromptResult as PromptOutcome } from '@tapetree/client'
import { fromDisk, type DiskLine, type Line, type SessionStore } from '@tapetree/session'

interface Sought {
  sessionId: string
  /** The id of the command. */
  command: string
  /** The last line before it was sent. */
  after: number
}

/** Finds the outcome of a prompt whose answer was lost when its process exited: log lines name the command that caused them. */
export async function outcomeInLog(
  store: SessionStore,
  { sessionId, command, after }: Sought,
): Promise<PromptOutcome | undefined> {
  await using session = await store.open(sessionId, { readOnly: true })
  for await (const stored of session.lines({ after })) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    const outcome = 'cause' in line && line.cause?.cmd === command ? outcomeOf(line) : undefined
    if (outcome) return outcome
  }
  return undefined
}

function outcomeOf(line: Line): PromptOutcome | undefined {
  if (line.type === 'submission' && line.submission.action === 'add') {
    return { outcome: 'queued', run_id: null, message_id: line.submission.id }
  }
  const runId = line.type === 'message' ? line.message.runId : undefined
  return runId === undefined ? undefined : { outcome: 'started', run_id: runId }
}
