import type { SessionSummary } from '@tapetree/client'
import type { RestResults } from '@tapetree/client/types'
import { useEffect, useState, type ReactNode } from 'react'
import { entryLink } from '../route.ts'
import { mayDo, rest, sentenceOf, type Role } from '../server.ts'
import { timeAgo, titleOf } from './describe-session.ts'

type Hit = RestResults['search']['hits'][number]

interface Found {
  query: string
  hits: readonly Hit[]
  cursor: string | undefined
}

type SearchedPlace = 'active' | 'archive'

interface SearchResultsProps {
  query: string
  sessions: readonly SessionSummary[]
  role: Role
}

/** Typing pauses this long before the server is asked. */
const pauseMs = 150
const pageSize = 30

/** Search over the text of all sessions, newest first. Archived sessions come last. */
export function SearchResults({ query, sessions, role }: SearchResultsProps): ReactNode {
  const active = useFound(query, 'active')
  const archived = useFound(query, 'archive')
  const titles = useTitles(active.found?.hits ?? [], sessions)
  const archivedTitles = useArchivedTitles(archived.found?.hits ?? [])
  const [problem, setProblem] = useState<string>()
  const now = Date.now()
  const restore = async ({ sessionId, entryId }: Hit): Promise<void> => {
    await rest.unarchive(sessionId)
    location.hash = entryLink(sessionId, entryId)
  }
  return (
    <div className="list-body">
      <p className="faint padded" role="status">
        {active.problem ?? archived.problem ?? statusText(query, active.found, archived.found)}
      </p>
      <ul className="hits">
        {active.found?.hits.map((hit) => (
          <li key={`${hit.sessionId}/${hit.entryId}`}>
            <a className="session" href={entryLink(hit.sessionId, hit.entryId)}>
              <HitFacts hit={hit} title={titles.get(hit.sessionId)} now={now} />
            </a>
          </li>
        ))}
      </ul>
      <MoreHits {...active} />
      {problem !== undefined && (
        <p className="notice failed" role="alert">
          {problem}
        </p>
      )}
      <ul className="hits" aria-label="Archived sessions">
        {archived.found?.hits.map((hit) => {
          const title = archivedTitles.get(hit.sessionId)
          return (
            <li key={`${hit.sessionId}/${hit.entryId}`} className="session">
              <HitFacts hit={hit} title={title} now={now} isArchived />
              {mayDo(role, 'drive') && (
                <div className="row-actions">
                  <button
                    className="quiet small"
                    aria-label={`Restore and open ${title ?? 'the session'}`}
                    onClick={() => void restore(hit).catch((error: unknown) => setProblem(sentenceOf(error)))}
                  >
                    Restore and open
                  </button>
                </div>
              )}
            </li>
          )
        })}
      </ul>
      <MoreHits {...archived} />
    </div>
  )
}

function HitFacts(props: { hit: Hit; title: string | undefined; now: number; isArchived?: boolean }): ReactNode {
  const { hit, title = 'Session', now, isArchived = false } = props
  return (
    <>
      <b>{title}</b>
      <small className="hit-role">
        {isArchived && <span className="tag">archived</span>} {roleNames[hit.role] ?? hit.role}
      </small>
      <span className="snippet">{marked(hit)}</span>
      <small>{timeAgo(hit.timestamp, now)}</small>
    </>
  )
}

interface Searched {
  /** Of this query or the one before. */
  found: Found | undefined
  problem: string | undefined
  more: () => void
}

function MoreHits({ found, more }: Searched): ReactNode {
  if (found?.cursor === undefined) return null
  return (
    <button className="quiet" onClick={more}>
      Show older matches
    </button>
  )
}

function useFound(query: string, place: SearchedPlace): Searched {
  const [found, setFound] = useState<Found>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    const leaving = new AbortController()
    const timer = setTimeout(() => {
      if (query.trim() === '') return setFound(undefined)
      rest.search({ q: query, place, limit: pageSize }, leaving.signal).then(
        ({ hits, cursor }) => {
          setFound({ query, hits, cursor })
          setProblem(undefined)
        },
        (error: unknown) => !leaving.signal.aborted && setProblem(sentenceOf(error)),
      )
      return undefined
    }, pauseMs)
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }
  }, [query, place])
  const more = (): void => {
    const { hits = [], cursor } = found ?? {}
    if (cursor === undefined) return
    rest.search({ q: query, place, limit: pageSize, cursor }).then(
      (page) =>
        setFound((now) => (now?.query === query ? { query, hits: [...hits, ...page.hits], cursor: page.cursor } : now)),
      (error: unknown) => setProblem(sentenceOf(error)),
    )
  }
  return { found, problem, more }
}

const roleNames: Readonly<Record<string, string>> = {
  user: 'you',
  assistant: 'agent',
  tool: 'tool result',
  compaction: 'summary',
  branch_summary: 'summary',
}

function statusText(query: string, active: Found | undefined, archived: Found | undefined): string {
  if (query.trim() === '') return 'Type to search all messages.'
  if (!active || !archived) return 'Searching…'
  const count = active.hits.length + archived.hits.length
  if (count === 0) return `Nothing contains “${active.query}”.`
  const hasMore = active.cursor !== undefined || archived.cursor !== undefined
  return `${count}${hasMore ? '+' : ''} ${count === 1 ? 'match' : 'matches'}`
}

function marked({ snippet, matches = [] }: Hit): ReactNode[] {
  const parts: ReactNode[] = []
  let at = 0
  for (const { start, end } of matches) {
    parts.push(snippet.slice(at, start), <mark key={start}>{snippet.slice(start, end)}</mark>)
    at = end
  }
  return [...parts, snippet.slice(at)]
}

/** The title of each session of the hits. Sessions that the list has not loaded are asked for once. */
function useTitles(hits: readonly Hit[], sessions: readonly SessionSummary[]): ReadonlyMap<string, string> {
  const [asked, setAsked] = useState<ReadonlyMap<string, string>>(new Map())
  const titles = new Map([...asked, ...sessions.map((session) => [session.id, titleOf(session)] as const)])
  const missing = [...new Set(hits.map(({ sessionId }) => sessionId))].filter((id) => !titles.has(id)).join()
  useEffect(() => {
    if (missing === '') return
    const ask = async (id: string): Promise<readonly [string, string]> => {
      const session = await rest.session(id).catch(() => undefined)
      return [id, session ? titleOf(session) : 'Session']
    }
    void Promise.all(missing.split(',').map(ask)).then((found) => setAsked((now) => new Map([...now, ...found])))
  }, [missing])
  return titles
}

/** Archived sessions are only in the list of the archive, which is read page by page until all titles are known. */
function useArchivedTitles(hits: readonly Hit[]): ReadonlyMap<string, string> {
  const [titles, setTitles] = useState<ReadonlyMap<string, string>>(new Map())
  const missing = [...new Set(hits.map(({ sessionId }) => sessionId))].filter((id) => !titles.has(id)).join()
  useEffect(() => {
    if (missing === '') return undefined
    const leaving = new AbortController()
    const read = async (): Promise<void> => {
      const wanted = new Set(missing.split(','))
      const found = new Map<string, string>()
      let cursor: string | undefined
      do {
        const page = await rest.sessions(
          { place: 'archive', limit: 200, ...(cursor !== undefined && { cursor }) },
          leaving.signal,
        )
        for (const session of page.sessions) if (wanted.has(session.id)) found.set(session.id, titleOf(session))
        cursor = page.cursor
      } while (cursor !== undefined && found.size < wanted.size)
      // Asks once: one of them may have left the archive meanwhile.
      for (const id of wanted) if (!found.has(id)) found.set(id, 'Session')
      setTitles((now) => new Map([...now, ...found]))
    }
    read().catch(() => undefined)
    return () => leaving.abort()
  }, [missing])
  return titles
}
