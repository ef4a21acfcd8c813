import type { SessionDetails, SessionSummary } from '@tapetree/client'
import type { Session, SessionInfo } from '@tapetree/session'
import type { LiveSession } from '../live/live-session.ts'
import { etagOf } from './etag.ts'

/** A row of the list. Where a session lies is nobody's business on the wire. */
export function summaryOf(info: SessionInfo): SessionSummary {
  const { cwd, parentSession, subagent, firstText, estimated } = info
  return {
    id: info.id,
    name: info.name,
    created: info.created,
    modified: info.modified,
    message_count: info.messageCount,
    ...(cwd !== undefined && { cwd }),
    ...(parentSession !== undefined && { parent_session: parentSession }),
    ...(subagent && { subagent }),
    ...(firstText !== undefined && { first_text: firstText }),
    status: info.status,
    queue_length: info.queueLength,
    cost: info.cost,
    damaged: info.damaged,
    ...(estimated !== undefined && { estimated }),
  }
}

export interface TaggedDetails {
  details: SessionDetails
  /** Of what can be changed, as the log has it: it stays the same while a run goes on, and whether or not the session is live. */
  etag: string
}

export async function detailsOf(session: Session, live: LiveSession | undefined): Promise<TaggedDetails> {
  const { model, thinkingLevel } = await session.getContext()
  const kept = {
    model: model && { provider: model.provider, model_id: model.modelId },
    thinking_level: thinkingLevel,
  }
  const now = { ...kept, mode: null, ...live?.driver.config() } as Pick<SessionDetails, 'mode'> & typeof kept
  const { turns, toolCalls, runMs, tokens, cost } = session.totals
  // Whoever looks without writing is told nothing of it: that is only the way we looked.
  const readOnly = live ? live.driver.readOnly?.reason : session.owner?.reason
  const details: SessionDetails = {
    ...summaryOf(session.info),
    head: session.head,
    leaf_id: session.leafId,
    run_id: session.openRun?.runId ?? null,
    ...(readOnly !== undefined && { read_only: readOnly }),
    model: now.model,
    thinking_level: now.thinking_level ?? null,
    mode: now.mode,
    usage: { turns, tool_calls: toolCalls, run_ms: runMs, tokens, cost },
  }
  return { details, etag: etagOf([session.id, session.name, kept]) }
}
