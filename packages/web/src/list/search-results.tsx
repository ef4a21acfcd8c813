import type { SessionSummary } from '@tapetree/client'
import type { RestResults } from '@tapetree/client/types'
import { useEffect, useState, type ReactNode } from 'react'
import { entryLink } from '../route.ts'
import { rest, sentenceOf } from '../server.ts'
import { timeAgo, titleOf } from './describe-session.ts'

type Hit = RestResults['search']['hits'][number]

interface Found {
  query: string
  hits: readonly Hit[]
  cursor: string | undefined
}

/** Typing pauses this long before the server is asked. */
const pauseMs = 150

/** Search over the text of all sessions, newest first. */
export function SearchResults({ query, sessions }: { query: string; sessions: readonly SessionSummary[] }): ReactNode {
  const [found, setFound] = useState<Found>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    const leaving = new AbortController()
    const timer = setTimeout(() => {
      if (query.trim() === '') return setFound(undefined)
      rest.search({ q: query, limit: 30 }, leaving.signal).then(
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
  }, [query])
  const more = async ({ hits, cursor }: Found): Promise<void> => {
    const page = await rest.search({ q: query, limit: 30, ...(cursor !== undefined && { cursor }) })
    setFound((now) => (now?.query === query ? { query, hits: [...hits, ...page.hits], cursor: page.cursor } : now))
  }
  const titles = useTitles(found?.hits ?? [], sessions)
  const now = Date.now()
  return (
    <div className="list-body">
      <p className="faint padded" role="status">
        {problem ?? (found ? countText(found) : query.trim() === '' ? 'Type to search all messages.' : 'Searching…')}
      </p>
      <ul className="hits">
        {found?.hits.map((hit) => (
          <li key={`${hit.sessionId}/${hit.entryId}`}>
            <a className="session" href={entryLink(hit.sessionId, hit.entryId)}>
              <b>{titles.get(hit.sessionId) ?? 'Session'}</b>
              <small className="hit-role">{roleNames[hit.role] ?? hit.role}</small>
              <span className="snippet">{marked(hit)}</span>
              <small>{timeAgo(hit.timestamp, now)}</small>
            </a>
          </li>
        ))}
      </ul>
      {found?.cursor !== undefined && (
        <button
          className="quiet"
          onClick={() => void more(found).catch((error: unknown) => setProblem(sentenceOf(error)))}
        >
          Show older matches
        </button>
      )}
    </div>
  )
}

const roleNames: Readonly<Record<string, string>> = {
  user: 'you',
  assistant: 'agent',
  tool: 'tool result',
  compaction: 'summary',
  branch_summary: 'summary',
}

function countText({ hits, cursor, query }: Found): string {
  if (hits.length === 0) return `Nothing contains “${query}”.`
  return `${hits.length}${cursor === undefined ? '' : '+'} ${hits.length === 1 ? 'match' : 'matches'}`
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
      // Sessions of the archive have no row of their own.
      const session = await rest.session(id).catch(() => undefined)
      return [id, session ? titleOf(session) : 'Session']
    }
    void Promise.all(missing.split(',').map(ask)).then((found) => setAsked((now) => new Map([...now, ...found])))
  }, [missing])
  return titles
}
