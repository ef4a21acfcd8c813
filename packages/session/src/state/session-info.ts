import type { SessionState } from './session-state.ts'

/** Rows and queries for lists of sessions. */

export type SessionStatus = 'idle' | 'running' | 'requires_action' | 'ended'

export interface SessionInfo {
  id: string
  /** Path of the session, if its store has paths. */
  path?: string
  name: string
  created: string
  /** Time of the last message, or of the last start of a command of the user. */
  modified: string
  messageCount: number
  cwd?: string
  parentSession?: string
  /** Set if a subagent of the parent session works in it. */
  subagent?: true
  /** Start of the first user message, shown for sessions without a name. */
  firstText?: string
  status: SessionStatus
  /** Set if a run is open but no process works on it; `status` is `idle` then. */
  stopped?: StoppedRun
  /** Set if the last run failed and no other one has started. `reason` is a sentence for people. */
  failed?: { reason: string }
  queueLength: number
  cost: number
  damaged: boolean
  /** Set if the row was made without reading the whole log: counts cover only the part that was read. */
  estimated?: boolean
}

/** `interrupted`: the process of the run has ended. `storage-failed`: its lines could not be stored. */
export interface StoppedRun {
  type: 'interrupted' | 'storage-failed'
  /** A sentence for people. */
  reason: string
}

export interface SessionQuery {
  place?: 'active' | 'archive' | 'trash'
  cwd?: string
  status?: SessionStatus
  /** Matches part of the name, the first message or the folder. */
  text?: string
  limit?: number
  cursor?: string
  /** Excludes sessions by folder, before they are counted. */
  isVisible?: (cwd: string | undefined) => boolean
}

export interface SessionPage {
  sessions: SessionInfo[]
  /** Pages are newest first; absent on the last page. */
  cursor?: string
}

export interface SearchQuery {
  text: string
  /** Default: `active`. */
  place?: 'active' | 'archive' | 'trash'
  limit?: number
  /** Search only the sessions with these ids. */
  among?: ReadonlySet<string>
  /** Only hits with one of these roles. */
  roles?: readonly string[]
  /** Only entries of this time or later, and only entries before this time; in ISO 8601. */
  since?: string
  until?: string
  /** Only hits that come after this one, the last hit of the page before. */
  after?: HitPosition
}

/** Hits are ordered by time, newest first, then by session and line. */
export type HitPosition = Pick<SearchHit, 'timestamp' | 'sessionId' | 'seq'>

export interface SearchHit {
  sessionId: string
  entryId: string
  seq: number
  timestamp: string
  /** The role of a message, or the type of another entry. */
  role: string
  /** Text around the first match. */
  snippet: string
  /** Where the words are in the snippet, in UTF-16 code units, in order. */
  matches: TextRange[]
}

export interface TextRange {
  start: number
  /** Exclusive. */
  end: number
}

/** The list row of a folded session. */
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
    ...failureOf(state),
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

/** Longer reasons, such as the body of an HTTP response, are cut. */
const maxReason = 300

/** The record of the run has a kind such as `auth`; the error has the sentence. */
function failureOf({ run, facts: { lastRun, lastError } }: SessionState): Pick<SessionInfo, 'failed'> {
  if (run || lastRun?.payload['outcome'] !== 'failed') return {}
  const { message } = lastError?.payload ?? {}
  const { reason } = lastRun.payload
  const given = typeof message === 'string' ? message : typeof reason === 'string' ? `The run failed: ${reason}.` : ''
  return { failed: { reason: given.slice(0, maxReason) || 'The run failed.' } }
}
