import type { SessionSummary } from '@tapetree/client'
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from 'react'
import { titleOf } from './list/describe-session.ts'
import { SessionList, type ListRoute } from './list/session-list.tsx'
import { useSessions } from './list/use-sessions.ts'
import { useAttention } from './notifications/use-attention.ts'
import { PairScreen } from './pair-screen.tsx'
import { leavePairing, settingsLink, useRoute, type Route } from './route.ts'
import { isUnauthorized, readCaller, rest, rights, sentenceOf, signOut, type Caller } from './server.ts'

/** Every screen is loaded when it is first opened: the list needs neither the transcript nor Markdown. */
const SettingsScreen = lazy(async () => ({ default: (await import('./settings/settings-screen.tsx')).SettingsScreen }))
const TreeScreen = lazy(async () => ({ default: (await import('./tree/tree-screen.tsx')).TreeScreen }))
const CompareScreen = lazy(async () => ({ default: (await import('./compare/compare-screen.tsx')).CompareScreen }))
const PlayerScreen = lazy(async () => ({ default: (await import('./player/player-screen.tsx')).PlayerScreen }))
const ContextScreen = lazy(async () => ({ default: (await import('./context/context-screen.tsx')).ContextScreen }))
const NewSession = lazy(async () => ({ default: (await import('./list/new-session.tsx')).NewSession }))
const SessionScreen = lazy(async () => ({ default: (await import('./session/session-screen.tsx')).SessionScreen }))

type Access =
  | { type: 'unknown' }
  | { type: 'unpaired'; notice?: string }
  | { type: 'paired'; caller: Caller }
  | { type: 'failed'; reason: string }

export function App(): ReactNode {
  const route = useRoute()
  const [access, setAccess] = useState<Access>({ type: 'unknown' })
  const [attempt, setAttempt] = useState(0)
  // The code leaves the address bar at once; the form keeps it.
  const [code, setCode] = useState<string>()
  useEffect(() => {
    if (route.type !== 'pair') return
    setCode(route.code)
    leavePairing()
  }, [route])
  useEffect(() => {
    let isCurrent = true
    readCaller().then(
      (caller) => isCurrent && setAccess(caller ? { type: 'paired', caller } : { type: 'unpaired' }),
      (error: unknown) => isCurrent && setAccess({ type: 'failed', reason: sentenceOf(error) }),
    )
    return () => void (isCurrent = false)
  }, [attempt])

  if (access.type === 'unknown') return <p className="centered">Connecting…</p>
  if (access.type === 'failed')
    return (
      <main className="centered">
        <p role="alert">{access.reason}</p>
        <button onClick={() => setAttempt(attempt + 1)}>Try again</button>
      </main>
    )
  if (access.type === 'unpaired' || code !== undefined)
    return (
      <PairScreen
        code={code}
        notice={access.type === 'unpaired' ? access.notice : undefined}
        replaces={access.type === 'paired' ? access.caller.role : undefined}
        onDone={() => {
          setCode(undefined)
          setAttempt(attempt + 1)
        }}
      />
    )
  return (
    <Home
      key={access.caller.tokenId}
      caller={access.caller}
      onEnd={(notice) => setAccess({ type: 'unpaired', ...(notice !== undefined && { notice }) })}
    />
  )
}

function Home({ caller, onEnd }: { caller: Caller; onEnd: (notice?: string) => void }): ReactNode {
  const route = useRoute()
  const sessions = useSessions()
  const { status } = sessions
  useEffect(() => {
    if (status.type === 'closed' && status.reason !== 'closed')
      onEnd('The access of this device has ended. Pair it again.')
  }, [status, onEnd])
  const listRoute = useListRoute(route)
  const isList = route === listRoute
  const openId = 'id' in route ? route.id : undefined
  const announcement = useAttention(sessions.sessions)

  return (
    <div className={isList ? 'home' : 'home has-screen'}>
      <div className="side" role={isList ? 'main' : 'complementary'} aria-label={isList ? undefined : 'All sessions'}>
        <SessionList sessions={sessions} route={listRoute} isScreen={isList} openId={openId} role={caller.role} />
        <div className="side-foot">
          <span id="role" title={rights[caller.role]?.meaning}>
            role {caller.role}
          </span>
          <a href={settingsLink('general')} aria-current={route.type === 'settings' ? 'page' : undefined}>
            Settings
          </a>
          <a href="api/docs" aria-label="API explorer">
            API
          </a>
          <button
            className="quiet small"
            onClick={() => {
              signOut(caller).then(
                () => onEnd(),
                (error: unknown) => (isUnauthorized(error) ? onEnd() : onEnd(sentenceOf(error))),
              )
            }}
          >
            Sign out
          </button>
        </div>
      </div>
      <p role="status" className="unseen">
        {announcement}
      </p>
      <Suspense fallback={<main className="main centered">Loading…</main>}>
        <OpenScreen route={route} caller={caller} sessions={sessions.sessions} />
      </Suspense>
    </div>
  )
}

/** The screen beside the list. */
function OpenScreen({
  route,
  caller,
  sessions,
}: {
  route: Route
  caller: Caller
  sessions: readonly SessionSummary[]
}): ReactNode {
  const id = 'id' in route ? route.id : undefined
  const summary = useSummary(id, sessions)
  const title = summary ? titleOf(summary) : 'the session'
  switch (route.type) {
    case 'new':
      return <NewSession sessions={sessions} />
    case 'settings':
      return <SettingsScreen section={route.section} caller={caller} />
    case 'tree':
      return <TreeScreen key={route.id} sessionId={route.id} title={title} role={caller.role} />
    case 'compare':
      return <CompareScreen sessionId={route.id} left={route.left} right={route.right} />
    case 'player':
      return <PlayerScreen key={route.id} sessionId={route.id} title={title} />
    case 'context':
      return <ContextScreen sessionId={route.id} entryId={route.entryId} title={title} />
    case 'session':
      return (
        <SessionScreen
          key={route.id}
          sessionId={route.id}
          entryId={route.entryId}
          role={caller.role}
          summary={summary}
        />
      )
    default:
      return (
        <section className="main nothing-open" aria-label="No session is open">
          <p>Choose a session, or start a new one.</p>
        </section>
      )
  }
}

/** From the list, or from the server if the list has not loaded it. */
function useSummary(id: string | undefined, sessions: readonly SessionSummary[]): SessionSummary | undefined {
  const listed = sessions.find((each) => each.id === id)
  const [asked, setAsked] = useState<SessionSummary>()
  const missing = listed ? undefined : id
  useEffect(() => {
    if (missing === undefined) return
    // An archived session has no summary of its own.
    void rest.session(missing).then(setAsked, () => undefined)
  }, [missing])
  return listed ?? (asked?.id === id ? asked : undefined)
}

/** What the list shows: the route if it names a list, and otherwise the last one that did. */
function useListRoute(route: Route): ListRoute {
  const last = useRef<ListRoute>({ type: 'list', place: 'active' })
  if (route.type === 'list' || route.type === 'search') last.current = route
  return last.current
}
