import type { SessionSummary } from '@tapetree/client'
import { useEffect, useState, type ReactNode } from 'react'
import { sessionLink } from '../route.ts'
import { mayDo, rest, sentenceOf, type Role } from '../server.ts'
import { describeStatus, timeAgo } from './describe-session.ts'
import type { ListedSessions } from './use-sessions.ts'

interface SessionListProps {
  sessions: ListedSessions
  openId: string | undefined
  role: Role
}

export function SessionList({ sessions: listed, openId, role }: SessionListProps): ReactNode {
  const now = useMinutes()
  const [isCreating, setCreating] = useState(false)
  const [problem, setProblem] = useState<string>()
  // The title of an open session is the heading of the page.
  const Brand = openId === undefined ? 'h1' : 'p'
  const shown = listed.sessions.filter(({ subagent }) => !subagent)
  return (
    <nav className="list" aria-label="Sessions">
      <header className="list-head">
        <Brand className="brand">
          <img src="./icon.svg" alt="" width="24" height="24" /> tapetree
        </Brand>
        <span id="connection" className="connection" role="status">
          {listed.status.type === 'attached' ? 'Live' : 'Connecting…'}
        </span>
        {mayDo(role, 'drive') && (
          <button className="small" aria-expanded={isCreating} onClick={() => setCreating(!isCreating)}>
            New session
          </button>
        )}
      </header>
      {isCreating && <NewSession folders={foldersOf(shown)} onDone={() => setCreating(false)} />}
      {problem !== undefined && <p className="notice failed">{problem}</p>}
      <ul id="sessions" className="sessions">
        {shown.map((session) => (
          <li key={session.id}>
            <SessionRow session={session} isOpen={session.id === openId} now={now} />
          </li>
        ))}
      </ul>
      {shown.length === 0 && listed.status.type === 'attached' && (
        <p className="faint padded">There are no sessions yet. {mayDo(role, 'drive') && 'Start one above.'}</p>
      )}
      {listed.hasMore && (
        <button
          className="quiet"
          onClick={() => void listed.loadMore().catch((error: unknown) => setProblem(sentenceOf(error)))}
        >
          Show older sessions
        </button>
      )}
    </nav>
  )
}

function SessionRow({ session, isOpen, now }: { session: SessionSummary; isOpen: boolean; now: number }): ReactNode {
  const { kind, label, reason } = describeStatus(session)
  const facts = [
    timeAgo(session.modified, now),
    session.cwd,
    session.queueLength > 0 ? `${session.queueLength} queued` : undefined,
    session.damaged ? 'its log is damaged' : undefined,
  ].filter((fact) => fact !== undefined)
  return (
    <a className="session" href={sessionLink(session.id)} aria-current={isOpen ? 'page' : undefined}>
      <b>{session.name || session.firstText || 'Untitled session'}</b>
      <span className={`status ${kind}`}>{label}</span>
      {reason !== undefined && <small className="reason">{reason}</small>}
      <small>{facts.join(' · ')}</small>
    </a>
  )
}

function NewSession({ folders, onDone }: { folders: string[]; onDone: () => void }): ReactNode {
  const [cwd, setCwd] = useState('')
  const [prompt, setPrompt] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const create = async (): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      const { id } = await rest.createSession({ ...(cwd !== '' && { cwd }), ...(prompt.trim() !== '' && { prompt }) })
      onDone()
      location.hash = sessionLink(id)
    } catch (error) {
      setProblem(sentenceOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className="new-session"
      onSubmit={(event) => {
        event.preventDefault()
        void create()
      }}
    >
      {problem !== undefined && (
        <p className="notice failed" role="alert">
          {problem}
        </p>
      )}
      <label className="field">
        Folder
        <input
          list="folders"
          value={cwd}
          placeholder="the server's first folder"
          onChange={(event) => setCwd(event.target.value)}
        />
        <datalist id="folders">
          {folders.map((folder) => (
            <option key={folder} value={folder} />
          ))}
        </datalist>
      </label>
      <label className="field">
        First message (optional)
        <textarea rows={3} value={prompt} onChange={(event) => setPrompt(event.target.value)} />
      </label>
      <div className="buttons">
        <button disabled={isBusy}>Create</button>
        <button type="button" className="quiet" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  )
}

function foldersOf(sessions: readonly SessionSummary[]): string[] {
  return [...new Set(sessions.flatMap(({ cwd }) => (cwd === undefined ? [] : [cwd])))].slice(0, 20)
}

/** The time, updated often enough for "2 minutes ago". */
function useMinutes(): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000)
    return () => clearInterval(timer)
  }, [])
  return now
}
