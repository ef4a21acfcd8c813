import type { SessionState } from './session-state.ts'

/** What a list of sessions shows and how it is asked for. */

export type SessionStatus = 'idle' | 'running' | 'requires_action' | 'ended'

export interface SessionInfo {
  id: string
  /** Where the session lies, if its store has paths. */
  path?: string
  name: string
  created: string
  /** Time of the last message. */
  modified: string
  messageCount: number
  cwd?: string
  parentSession?: string
  /** A subagent of the parent session works in it, not a person. */
  subagent?: true
  /** Start of the first user message, for lists of sessions without a name. */
  firstText?: string
  status: SessionStatus
  /** A run stands open, and nothing works on it: `status` is `idle` then. */
  stopped?: StoppedRun
  queueLength: number
  cost: number
  damaged: boolean
  /** True where the list was made without reading the whole log: counts are those of what was read. */
  estimated?: boolean
}

/** `interrupted`: the process that ran it has gone. `storage-failed`: its lines could not be stored. */
export interface StoppedRun {
  type: 'interrupted' | 'storage-failed'
  /** A sentence. */
  reason: string
}

export interface SessionQuery {
  place?: 'active' | 'archive' | 'trash'
  cwd?: string
  status?: SessionStatus
  /** Part of the name, the first message or the folder. */
  text?: string
  limit?: number
  cursor?: string
  /** Leaves out sessions by their folder, before they are counted. */
  isVisible?: (cwd: string | undefined) => boolean
}

export interface SessionPage {
  sessions: SessionInfo[]
  /** Newest first; absent on the last page. */
  cursor?: string
}

export interface SearchQuery {
  text: string
  limit?: number
  /** Only in the sessions with these ids. */
  among?: ReadonlySet<string>
}

export interface SearchHit {
  sessionId: string
  entryId: string
  seq: number
  timestamp: string
  role: string
  /** Some words around the first match. */
  snippet: string
}

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
