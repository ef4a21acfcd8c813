import type { ConnectionStatus, SessionSummary } from '@tapetree/client'
import { useVirtualizer } from '@tanstack/react-virtual'
import { lazy, Suspense, useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { placeLink, replaceRoute, searchLink, type Place, type Route } from '../route.ts'
import { mayDo, sentenceOf, type Role } from '../server.ts'
import { useAway, type Away } from '../use-away.ts'
import { DoneNotice, type Done } from './done-notice.tsx'
import { nestSessions } from './nest-sessions.ts'
import { SessionRow } from './session-row.tsx'
import type { ListedSessions } from './use-sessions.ts'
import './list.css'

const SearchResults = lazy(async () => ({ default: (await import('./search-results.tsx')).SearchResults }))
const StoredSessions = lazy(async () => ({ default: (await import('./stored-sessions.tsx')).StoredSessions }))

export type ListRoute = Extract<Route, { type: 'list' | 'search' }>

interface SessionListProps {
  sessions: ListedSessions
  /** What the list shows. While another screen is open, the last that it showed. */
  route: ListRoute
  /** Whether the list is the screen, not beside one. */
  isScreen: boolean
  openId: string | undefined
  role: Role
}

const places: readonly { place: Place; name: string }[] = [
  { place: 'active', name: 'Sessions' },
  { place: 'archive', name: 'Archive' },
  { place: 'trash', name: 'Trash' },
]

export function SessionList({ sessions: listed, route, isScreen, openId, role }: SessionListProps): ReactNode {
  // The title of another screen is the heading of the page.
  const Brand = isScreen ? 'h1' : 'p'
  const away = useAway(listed.status)
  return (
    <nav className="list" aria-label="Sessions">
      <header className="list-head">
        <Brand className="brand">
          <img src="./icon.svg" alt="" width="24" height="24" /> tapetree
        </Brand>
        <span id="connection" className="connection" role="status">
          {connectionText(away, listed.status)}
        </span>
        {mayDo(role, 'drive') && (
          <button className="small" onClick={() => (location.hash = '#/new')}>
            New session
          </button>
        )}
      </header>
      <SearchField route={route} isScreen={isScreen} />
      <div className="places">
        {places.map(({ place, name }) => (
          <a
            key={place}
            href={placeLink(place)}
            aria-current={route.type === 'list' && route.place === place ? 'true' : undefined}
          >
            {name}
          </a>
        ))}
      </div>
      {route.type === 'list' && route.place === 'active' ? (
        <ActiveSessions listed={listed} openId={openId} role={role} />
      ) : (
        <Suspense fallback={<p className="faint padded">Loading…</p>}>
          {route.type === 'search' ? (
            <SearchResults query={route.query} sessions={listed.sessions} role={role} />
          ) : (
            <StoredSessions key={route.place} place={route.place === 'trash' ? 'trash' : 'archive'} role={role} />
          )}
        </Suspense>
      )}
    </nav>
  )
}

function connectionText({ isLost, awaySeconds }: Away, { type }: ConnectionStatus): string {
  if (type !== 'attached') return isLost ? 'Connection lost' : 'Connecting…'
  return awaySeconds === undefined ? 'Live' : `Live again after ${awaySeconds} s`
}

/** The query is in the address: each key replaces it, so that one step back leaves the search. */
function SearchField({ route, isScreen }: { route: ListRoute; isScreen: boolean }): ReactNode {
  const field = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(route.type === 'search' ? route.query : '')
  const asked = route.type === 'search' ? route.query : ''
  useEffect(() => setTyped(asked), [asked])
  useEffect(() => {
    const focus = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      field.current?.focus()
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [])
  const search = (query: string): void => {
    setTyped(query)
    if (route.type === 'search' && isScreen) replaceRoute(query.trim() === '' ? placeLink('active') : searchLink(query))
    else if (query.trim() !== '') location.hash = searchLink(query)
  }
  return (
    <search className="list-search">
      <input
        ref={field}
        type="search"
        aria-label="Search all sessions"
        placeholder="Search all sessions"
        autoComplete="off"
        value={typed}
        onChange={(event) => search(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && typed !== '' && search('')}
      />
    </search>
  )
}

function ActiveSessions({
  listed,
  openId,
  role,
}: {
  listed: ListedSessions
  openId: string | undefined
  role: Role
}): ReactNode {
  const now = useMinutes()
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [done, setDone] = useState<Done>()
  const rows = nestSessions(
    listed.sessions,
    (session, children) =>
      toggled.get(session.id) ?? children.some(({ id, status }) => id === openId || isActive(status)),
  )
  const place = useRef<HTMLDivElement>(null)
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => 66,
    getItemKey: (index) => rows[index]?.session.id ?? index,
    overscan: 8,
  })
  const shown = virtualizer.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  const { hasMore, loadMore } = listed
  const isLoading = useRef(false)
  useEffect(() => {
    if (!hasMore || last < rows.length - 10 || isLoading.current) return
    isLoading.current = true
    void loadMore()
      .catch((error: unknown) => setDone({ text: sentenceOf(error), isProblem: true }))
      .finally(() => void (isLoading.current = false))
  }, [hasMore, loadMore, last, rows.length])

  const focus = (index: number): void => {
    virtualizer.scrollToIndex(index)
    requestAnimationFrame(() => place.current?.querySelector<HTMLElement>(`[data-index="${index}"] a`)?.focus())
  }
  const move = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLAnchorElement)) return
    const index = Number(event.target.closest<HTMLElement>('[data-index]')?.dataset['index'])
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 }[event.key]
    if (to === undefined || rows[to] === undefined) return
    event.preventDefault()
    focus(to)
  }
  return (
    <>
      <div className="list-body" ref={place}>
        <ul id="sessions" className="sessions" style={{ height: virtualizer.getTotalSize() }} onKeyDown={move}>
          {shown.map(({ index, key, start }) => {
            const row = rows[index]
            return (
              row && (
                <li
                  key={key}
                  data-index={index}
                  ref={virtualizer.measureElement}
                  aria-setsize={rows.length}
                  aria-posinset={index + 1}
                  style={{ transform: `translateY(${start}px)`, paddingInlineStart: `${row.depth}rem` }}
                >
                  <SessionRow
                    {...row}
                    isOpen={row.session.id === openId}
                    now={now}
                    role={role}
                    onToggle={() => setToggled(new Map(toggled).set(row.session.id, !row.isExpanded))}
                    onDone={setDone}
                  />
                </li>
              )
            )
          })}
        </ul>
        {rows.length === 0 && listed.status.type === 'attached' && (
          <p className="faint padded">There are no sessions yet. {mayDo(role, 'drive') && 'Start one above.'}</p>
        )}
      </div>
      <DoneNotice done={done} onClose={() => setDone(undefined)} />
    </>
  )
}

function isActive(status: SessionSummary['status']): boolean {
  return status === 'running' || status === 'requires_action'
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
