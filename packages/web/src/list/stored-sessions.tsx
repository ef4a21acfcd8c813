import type { SessionSummary } from '@tapetree/client'
import { useCallback, useState, type ReactNode } from 'react'
import { mayDo, rest, sentenceOf, type Role } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import { shortPath, timeAgo, titleOf } from './describe-session.ts'
import { DoneNotice, type Done } from './done-notice.tsx'

/** The archive or the trash. */
export function StoredSessions({ place, role }: { place: 'archive' | 'trash'; role: Role }): ReactNode {
  const [limit, setLimit] = useState(50)
  const [done, setDone] = useState<Done>()
  const load = useCallback(
    async (signal: AbortSignal) => {
      const sessions: SessionSummary[] = []
      let cursor: string | undefined
      do {
        const page = await rest.sessions({ place, limit: 50, ...(cursor !== undefined && { cursor }) }, signal)
        sessions.push(...page.sessions)
        cursor = page.cursor
      } while (cursor !== undefined && sessions.length < limit)
      return { sessions, hasMore: cursor !== undefined }
    },
    [place, limit],
  )
  const { value, problem, reload } = useLoaded(load)
  const change = (work: Promise<unknown>, text: string): void => {
    work.then(
      () => {
        setDone({ text })
        reload()
      },
      (error: unknown) => setDone({ text: sentenceOf(error), isProblem: true }),
    )
  }
  return (
    <>
      <div className="list-body">
        {problem !== undefined && <p className="notice failed">{problem}</p>}
        {value === undefined && problem === undefined && <p className="faint padded">Loading…</p>}
        {value?.sessions.length === 0 && (
          <p className="faint padded">{place === 'trash' ? 'The trash is empty.' : 'No session is archived.'}</p>
        )}
        <ul className="stored">
          {value?.sessions.map((session) => (
            <li key={session.id} className="session">
              <b>{titleOf(session)}</b>
              <small>
                {[timeAgo(session.modified, Date.now()), shortPath(session.cwd ?? '')].filter(Boolean).join(' · ')}
              </small>
              {mayDo(role, 'drive') && (
                <StoredActions
                  session={session}
                  place={place}
                  onRestore={() =>
                    change(
                      place === 'trash' ? rest.restore(session.id) : rest.unarchive(session.id),
                      `Restored “${titleOf(session)}”.`,
                    )
                  }
                  onErase={() => change(rest.eraseSession(session.id), `Deleted “${titleOf(session)}” for good.`)}
                />
              )}
            </li>
          ))}
        </ul>
        {value?.hasMore && (
          <button className="quiet" onClick={() => setLimit(limit + 50)}>
            Show older sessions
          </button>
        )}
      </div>
      <DoneNotice done={done} onClose={() => setDone(undefined)} />
    </>
  )
}

/** Only the trash deletes for good, after a second click. */
function StoredActions({
  session,
  place,
  onRestore,
  onErase,
}: {
  session: SessionSummary
  place: 'archive' | 'trash'
  onRestore: () => void
  onErase: () => void
}): ReactNode {
  const [isAsking, setAsking] = useState(false)
  const title = titleOf(session)
  return (
    <div className="row-actions">
      {isAsking ? (
        <>
          <span>Delete it for good? This cannot be undone.</span>
          <button className="no small" onClick={onErase} aria-label={`Delete for good: ${title}`}>
            Delete for good
          </button>
          <button className="quiet small" autoFocus onClick={() => setAsking(false)}>
            Keep
          </button>
        </>
      ) : (
        <>
          <button className="quiet small" onClick={onRestore} aria-label={`Restore ${title}`}>
            Restore
          </button>
          {place === 'trash' && (
            <button className="no small" onClick={() => setAsking(true)} aria-label={`Delete… ${title}`}>
              Delete…
            </button>
          )}
        </>
      )}
    </div>
  )
}
