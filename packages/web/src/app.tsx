import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react'
import { SessionList } from './list/session-list.tsx'
import { useSessions } from './list/use-sessions.ts'
import { PairScreen } from './pair-screen.tsx'
import { leavePairing, useRoute } from './route.ts'
import { isUnauthorized, readCaller, rights, sentenceOf, signOut, type Caller } from './server.ts'

/** Loaded with the first session: the list needs neither the transcript nor Markdown. */
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
  const openId = route.type === 'session' ? route.id : undefined
  const waiting = sessions.sessions.filter((each) => each.status === 'requires_action').length
  useEffect(() => {
    document.title = waiting > 0 ? `(${waiting}) tapetree` : 'tapetree'
  }, [waiting])

  return (
    <div className={openId === undefined ? 'home' : 'home has-session'}>
      <div className="side" role={openId === undefined ? 'main' : 'complementary'}>
        <SessionList sessions={sessions} openId={openId} role={caller.role} />
        <div className="side-foot">
          <span id="role" title={rights[caller.role]?.meaning}>
            role {caller.role}
          </span>
          <a href="api/docs">API explorer</a>
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
      {openId === undefined ? (
        <section className="main nothing-open" aria-label="No session is open">
          <p>Choose a session, or start a new one.</p>
        </section>
      ) : (
        <Suspense fallback={<main className="main centered">Loading…</main>}>
          <SessionScreen
            key={openId}
            sessionId={openId}
            role={caller.role}
            summary={sessions.sessions.find(({ id }) => id === openId)}
          />
        </Suspense>
      )}
    </div>
  )
}
