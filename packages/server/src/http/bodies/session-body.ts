import type { SessionDetails, WireSessionSummary } from '@tapetree/client/protocol'
import type { Session, SessionInfo } from '@tapetree/session'
import type { LiveSession } from '../../live/live-session.ts'
import { stoppedRun } from '../../live/state-values.ts'
import { workspaceOnWire, type WorkspaceSource } from '../../tool-hosts/tool-hosts.ts'
import { etagOf } from '../responses.ts'

interface SummaryOptions {
  live: LiveSession | undefined
  /** The session, if it is open. */
  session?: Session | undefined
  /** The tool hosts of the caller. */
  hosts: WorkspaceSource | undefined
}

/** A row of the list. The path of a session is never sent. */
export function summaryOf(
  info: SessionInfo,
  { live, session = live?.session, hosts }: SummaryOptions,
): WireSessionSummary {
  const { cwd, parentSession, subagent, firstText, failed, estimated } = info
  const workspace = session && workspaceOnWire(session, hosts)
  const stopped = live ? stoppedRun(live.driver) : info.stopped
  return {
    id: info.id,
    name: info.name,
    created: info.created,
    modified: info.modified,
    message_count: info.messageCount,
    ...(cwd !== undefined && { cwd }),
    ...(workspace && { workspace }),
    ...(parentSession !== undefined && { parent_session: parentSession }),
    ...(subagent && { subagent }),
    ...(firstText !== undefined && { first_text: firstText }),
    status: stopped && info.status === 'running' ? 'idle' : info.status,
    ...(stopped && { stopped }),
    ...(failed && { failed }),
    queue_length: info.queueLength,
    cost: info.cost,
    damaged: info.damaged,
    ...(estimated !== undefined && { estimated }),
  }
}

/** The list row: an open run of a session that is not live here may be interrupted. */
export async function infoOf(session: Session, live: LiveSession | undefined): Promise<SessionInfo> {
  const { info } = session
  if (live || info.status !== 'running' || (await session.currentOwner())) return info
  return { ...info, stopped: { type: 'interrupted', reason: 'The process of the run has ended.' } }
}

export interface TaggedDetails {
  details: SessionDetails
  /** Covers the mutable properties in the log: it does not change during a run, nor with the session being live. */
  etag: string
}

export async function detailsOf(
  session: Session,
  live: LiveSession | undefined,
  hosts: WorkspaceSource | undefined,
): Promise<TaggedDetails> {
  const { model, thinkingLevel } = await session.getModelChoice()
  const kept = {
    model: model && { provider: model.provider, model_id: model.modelId },
    thinking_level: thinkingLevel,
  }
  const now = { ...kept, mode: null, ...live?.driver.config() } as Pick<SessionDetails, 'mode'> & typeof kept
  const { turns, toolCalls, runMs, tokens, cost } = session.totals
  // A session opened only for this read is read-only by our choice, which is not reported.
  const readOnly = live ? live.driver.readOnly?.reason : session.owner?.reason
  const details: SessionDetails = {
    ...summaryOf(await infoOf(session, live), { live, session, hosts }),
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
