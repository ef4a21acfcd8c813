import type { SessionInfo, SessionStatus } from './session-list.ts'
import type { SessionState } from './session-state.ts'

/** The row of a list for a folded session. */
export function sessionInfoOf(state: SessionState, session: { id: string; path?: string }): SessionInfo {
  const { header, totals } = state
  const created = typeof header?.timestamp === 'string' ? header.timestamp : ''
  const cwd = header?.['cwd']
  const parentSession = header?.['parent_session']
  return {
    id: session.id,
    ...(session.path !== undefined && { path: session.path }),
    name: state.name,
    created,
    modified: totals.modified || created,
    messageCount: totals.messages,
    ...(typeof cwd === 'string' && { cwd }),
    ...(typeof parentSession === 'string' && { parentSession }),
    ...(header?.['subagent'] === true && { subagent: true }),
    ...(totals.firstText !== '' && { firstText: totals.firstText }),
    status: statusOf(state),
    queueLength: state.inbox.waiting('follow-up').length,
    cost: totals.usage.cost,
    damaged: state.damageCount > 0,
  }
}

function statusOf(state: SessionState): SessionStatus {
  if (state.ended !== null) return 'ended'
  if (state.permissions.pending.length > 0) return 'requires_action'
  return state.run ? 'running' : 'idle'
}
