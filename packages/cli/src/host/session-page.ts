import type { RestClient, SessionSummary } from '@tapetree/client'
import type { SessionInfo, SessionPage, SessionQuery } from '@tapetree/session'

/** The most that a server gives at once. */
const maxListed = 200

/** Sessions of a server, as a store lists its own. */
export async function sessionPage(rest: RestClient, query: SessionQuery): Promise<SessionPage> {
  const { sessions, cursor } = await rest.sessions(queryOf(query))
  return { sessions: sessions.map(infoOf), ...(cursor !== undefined && { cursor }) }
}

function queryOf({ limit = maxListed, text, ...rest }: SessionQuery): Parameters<RestClient['sessions']>[0] {
  return { ...rest, limit: Math.min(limit, maxListed), ...(text !== undefined && { q: text }) }
}

export function infoOf(summary: SessionSummary): SessionInfo {
  const { cwd, parent_session: parentSession, subagent, first_text: firstText, estimated } = summary
  return {
    id: summary.id,
    name: summary.name,
    created: summary.created,
    modified: summary.modified,
    messageCount: summary.message_count,
    ...(cwd !== undefined && { cwd }),
    ...(parentSession !== undefined && { parentSession }),
    ...(subagent && { subagent }),
    ...(firstText !== undefined && { firstText }),
    status: summary.status,
    queueLength: summary.queue_length,
    cost: summary.cost,
    damaged: summary.damaged,
    ...(estimated !== undefined && { estimated }),
  }
}
