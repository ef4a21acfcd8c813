import type { SessionSummary } from '@tapetree/client'
import { useRef, useState, type ReactNode } from 'react'
import { sessionLink } from '../route.ts'
import { mayDo, rest, sentenceOf, type Role } from '../server.ts'
import { describeStatus, shortPath, timeAgo, titleOf } from './describe-session.ts'
import type { NestedSession } from './nest-sessions.ts'
import type { Done } from './done-notice.tsx'

interface SessionRowProps extends NestedSession {
  isOpen: boolean
  now: number
  role: Role
  onToggle: () => void
  onDone: (done: Done) => void
}

export function SessionRow(props: SessionRowProps): ReactNode {
  const { session, childCount, isExpanded, isOpen, now, role, onToggle, onDone } = props
  const { kind, label, reason } = describeStatus(session)
  const [mode, setMode] = useState<'closed' | 'actions' | 'rename'>('closed')
  const button = useRef<HTMLButtonElement>(null)
  const title = titleOf(session)
  const close = (): void => {
    setMode('closed')
    button.current?.focus()
  }
  const move = async (work: Promise<unknown>, done: Done): Promise<void> => {
    setMode('closed')
    try {
      await work
      onDone(done)
      if (isOpen) location.hash = '#/'
    } catch (error) {
      onDone({ text: sentenceOf(error), isProblem: true })
    }
  }
  return (
    <div className="session-row" onKeyDown={(event) => event.key === 'Escape' && mode !== 'closed' && close()}>
      {mode === 'rename' ? (
        <Rename
          session={session}
          onClose={(problem) => {
            close()
            if (problem !== undefined) onDone({ text: problem, isProblem: true })
          }}
        />
      ) : (
        <a className="session" href={sessionLink(session.id)} aria-current={isOpen ? 'page' : undefined}>
          <b>{title}</b>
          <span className={`status ${kind}`}>{label}</span>
          {reason !== undefined && <small className="reason">{reason}</small>}
          <small title={session.cwd}>{factsOf(session, now).join(' · ')}</small>
        </a>
      )}
      {mayDo(role, 'queue') && mode !== 'rename' && (
        <button
          ref={button}
          className="more"
          aria-label={`Actions for ${title}`}
          aria-expanded={mode === 'actions'}
          onClick={() => setMode(mode === 'actions' ? 'closed' : 'actions')}
        >
          ⋯
        </button>
      )}
      {mode === 'actions' && (
        <div className="row-actions">
          <button className="quiet small" onClick={() => setMode('rename')}>
            Rename
          </button>
          {mayDo(role, 'drive') && (
            <>
              <button
                className="quiet small"
                onClick={() =>
                  void move(rest.archive(session.id), {
                    text: `Archived “${title}”.`,
                    undo: () => rest.unarchive(session.id),
                  })
                }
              >
                Archive
              </button>
              <button
                className="no small"
                onClick={() =>
                  void move(rest.deleteSession(session.id), {
                    text: `Moved “${title}” to the trash.`,
                    undo: () => rest.restore(session.id),
                  })
                }
              >
                Delete
              </button>
            </>
          )}
        </div>
      )}
      {childCount > 0 && (
        <button className="fold subagents" aria-expanded={isExpanded} onClick={onToggle}>
          {isExpanded ? '▾' : '▸'} {childCount === 1 ? '1 subagent' : `${childCount} subagents`}
        </button>
      )}
    </div>
  )
}

function Rename({ session, onClose }: { session: SessionSummary; onClose: (problem?: string) => void }): ReactNode {
  const [name, setName] = useState(session.name)
  return (
    <form
      className="rename"
      onSubmit={(event) => {
        event.preventDefault()
        rest.patchSession(session.id, { name: name.trim() === '' ? null : name.trim() }).then(
          () => onClose(),
          (error: unknown) => onClose(sentenceOf(error)),
        )
      }}
    >
      <input
        aria-label={`New name of ${titleOf(session)}`}
        maxLength={1000}
        autoFocus
        value={name}
        placeholder={session.firstText ?? 'Untitled session'}
        onChange={(event) => setName(event.target.value)}
      />
      <div className="buttons">
        <button className="small">Rename</button>
        <button type="button" className="quiet small" onClick={() => onClose()}>
          Cancel
        </button>
      </div>
    </form>
  )
}

function factsOf(session: SessionSummary, now: number): string[] {
  return [
    timeAgo(session.modified, now),
    session.cwd === undefined ? undefined : shortPath(session.cwd),
    session.subagent ? 'subagent' : session.parentSession === undefined ? undefined : 'fork',
    session.queueLength > 0 ? `${session.queueLength} queued` : undefined,
    session.damaged ? 'its log is damaged' : undefined,
  ].filter((fact) => fact !== undefined)
}
