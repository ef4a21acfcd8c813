import type { ConnectionStatus, SessionSummary } from '@tapetree/client'
import { isPausing, serverText } from '@tapetree/session/screen'
import { lazy, Suspense, useCallback, useEffect, useRef, useState, type ReactNode } from 'react'
import { describeStatus } from '../list/describe-session.ts'
import { mayDo, sentenceOf, type Role } from '../server.ts'
import { useAway } from '../use-away.ts'
import { levels, modes, type PageCommand } from './completion.ts'
import { Composer } from './composer.tsx'
import { Help, useShortcuts } from './help.tsx'
import { Jobs } from './jobs.tsx'
import { Requests } from './requests.tsx'
import type { Done } from './rewind.tsx'
import { SessionMenu } from './session-menu.tsx'
import { TranscriptList } from './transcript-list.tsx'
import { GoBackContext, isRunning, useSelected, useSession, type OpenedSession } from './use-session.ts'
import './session.css'

const RewindDialog = lazy(async () => ({ default: (await import('./rewind.tsx')).RewindDialog }))
const BlockedDialog = lazy(async () => ({ default: (await import('./blocked.tsx')).BlockedDialog }))

interface SessionScreenProps {
  sessionId: string
  role: Role
  /** From the list; absent until the list is loaded, and for a session that is not in it. */
  summary: SessionSummary | undefined
  /** Opens the transcript at this entry instead of its end. */
  entryId?: string | undefined
}

export function SessionScreen({ sessionId, ...props }: SessionScreenProps): ReactNode {
  const opened = useSession(sessionId)
  return opened ? <Opened opened={opened} {...props} /> : <main className="main centered">Opening…</main>
}

function Opened({
  opened,
  role,
  summary,
  entryId,
}: Omit<SessionScreenProps, 'sessionId'> & { opened: OpenedSession }): ReactNode {
  const { session } = opened
  const status = useSelected(opened, () => session.status)
  const name = useSelected(opened, () => session.transcript.name)
  const isAsking = useSelected(opened, () => session.transcript.permissions.length > 0)
  const lastError = useSelected(opened, () => session.transcript.lastError)
  const readOnly = useSelected(opened, () => session.state('read_only'))
  const run = useSelected(opened, () => session.state('run'))
  const isBusy = useSelected(opened, isRunning)
  const [problem, setProblem] = useState<string>()
  const [isHelping, setHelping] = useState(false)
  const [showsJobs, setShowsJobs] = useState(false)
  const [showsBlocked, setShowsBlocked] = useState(false)
  const newest = useRef<() => void>(undefined)
  const prefill = useRef<(text: string) => void>(undefined)
  /** The open dialog; without an entry, it takes back the last step. */
  const [rewinding, setRewinding] = useState<{ entryId?: string }>()
  const [rewound, setRewound] = useState<Done>()
  const openRestore = useSelected(opened, () => session.state('config')?.openRestore)
  const attempt = (work: Promise<unknown>): void => void work.catch((error: unknown) => setProblem(sentenceOf(error)))
  const title = name || summary?.name || summary?.firstText || 'Session'
  const state = describeStatus({
    status: isAsking ? 'requires_action' : isBusy ? 'running' : 'idle',
    stopped: run?.stopped,
  })
  const isInterrupted = run?.waitingFor?.type === 'resume'

  const mayRewind = mayDo(role, 'drive') && !readOnly
  const maySettle = mayDo(role, 'approve') && !readOnly
  // The same function during a run, so that no row is drawn again.
  const goBack = useCallback(
    (entryId: string) =>
      isRunning(opened) ? setProblem('The agent is working. Stop it first.') : setRewinding({ entryId }),
    [opened],
  )
  const undo = (): void => {
    const last = session.transcript.path.items.slice().findLast(({ type }) => type === 'user')
    if (last) goBack(last.id)
    else setProblem('There is no message of yours to go back to.')
  }
  const redo = async (): Promise<void> => {
    const { takeBack } = await import('./rewind.tsx')
    const done = await takeBack(session.sessionId)
    if (done) setRewound(done)
    else setRewinding({})
  }
  const endRestore = async (how: 'finish' | 'undo'): Promise<void> => {
    const { endInterrupted } = await import('./rewind.tsx')
    setRewound(await endInterrupted(session.sessionId, how))
  }
  const pageCommands: Record<PageCommand, () => void> = {
    help: () => setHelping(true),
    undo,
    redo: () => attempt(redo()),
    blocked: () => (maySettle ? setShowsBlocked(true) : setProblem('This device may not apply blocked writes.')),
  }

  useShortcuts({
    help: () => setHelping(true),
    stop: () => isBusy && attempt(session.abort()),
    newest: () => newest.current?.(),
  })

  return (
    <main className="main session-screen">
      <header className="session-head">
        <a className="back" href="#/" aria-label="All sessions">
          ←
        </a>
        <h1>{title}</h1>
        <span className={`status ${state.kind}`}>{state.label}</span>
        <button
          className="quiet small keys"
          aria-label="Keys and commands"
          title="Keys and commands"
          onClick={() => setHelping(true)}
        >
          ?
        </button>
        <SessionMenu
          sessionId={session.sessionId}
          onJobs={() => setShowsJobs(true)}
          onBlocked={maySettle ? () => setShowsBlocked(true) : undefined}
        />
      </header>
      {isHelping && <Help onClose={() => setHelping(false)} />}
      <ConnectionNotice status={status} />
      {readOnly && <p className="notice">{readOnly.reason}</p>}
      {rewinding && (
        <Suspense>
          <RewindDialog
            sessionId={session.sessionId}
            entryId={rewinding.entryId}
            onClose={() => setRewinding(undefined)}
            onDone={(done) => {
              setRewinding(undefined)
              setRewound(done)
              if (done.text !== undefined) prefill.current?.(done.text)
            }}
          />
        </Suspense>
      )}
      {showsBlocked && (
        <Suspense>
          <BlockedDialog session={session} onClose={() => setShowsBlocked(false)} />
        </Suspense>
      )}
      <GoBackContext value={mayRewind ? goBack : undefined}>
        <TranscriptList opened={opened} entryId={entryId} newest={newest} />
      </GoBackContext>
      <div className="session-foot">
        {problem !== undefined && (
          <p className="notice failed" role="alert">
            {problem}
            <button className="quiet tiny" onClick={() => setProblem(undefined)}>
              Dismiss
            </button>
          </p>
        )}
        {rewound && (
          <div className="notice good" role="status">
            <span>{rewound.sentences.join(' ')}</span>
            <span className="notice-buttons">
              {rewound.canUndo && !isBusy && (
                <button className="quiet tiny" onClick={() => attempt(redo())}>
                  Undo
                </button>
              )}
              <button className="quiet tiny" onClick={() => setRewound(undefined)}>
                Dismiss
              </button>
            </span>
          </div>
        )}
        {openRestore !== undefined && !isBusy && (
          <div className="notice" role="status">
            <span>Putting files back was interrupted. Some have gone back already; nothing is lost.</span>
            {mayRewind && (
              <span className="notice-buttons">
                <button className="quiet tiny" onClick={() => attempt(endRestore('finish'))}>
                  Finish
                </button>
                <button className="quiet tiny" onClick={() => attempt(endRestore('undo'))}>
                  Undo
                </button>
              </span>
            )}
          </div>
        )}
        {lastError && !isBusy && (
          <div className="notice failed" role="status">
            <span>{lastError.message}</span>
            {mayDo(role, 'drive') && (
              <button className="quiet tiny" onClick={() => attempt(session.run('retry', {}))}>
                Retry
              </button>
            )}
          </div>
        )}
        {isInterrupted && (
          <div className="notice" role="status">
            <span>The run was interrupted.</span>
            {mayDo(role, 'drive') && (
              <button className="quiet tiny" onClick={() => attempt(session.run('resume', { by_person: true }))}>
                Resume
              </button>
            )}
          </div>
        )}
        {run?.waitingFor?.type === 'auto_retry_start' && (
          <p className="notice" role="status">
            {run.waitingFor.error.message} Trying again, attempt {run.waitingFor.attempt}.
          </p>
        )}
        {run?.waitingFor?.type === 'storage' && (
          <p className="notice" role="status">
            Waiting for the storage. Nothing is lost; the session goes on when it answers.
          </p>
        )}
        {run?.waitingFor?.type === 'tool_host' && (
          <p className="notice" role="status">
            {run.waitingFor.reason} Messages are kept; the session goes on when the host is back.
          </p>
        )}
        <Jobs opened={opened} mayStop={mayDo(role, 'drive')} isOpen={showsJobs} onToggle={setShowsJobs} />
        <Requests opened={opened} mayAnswer={mayDo(role, 'approve')} />
        <Composer
          opened={opened}
          role={role}
          isRunning={isBusy}
          onProblem={setProblem}
          onPageCommand={(command) => pageCommands[command]()}
          prefill={prefill}
        />
        <NextRun opened={opened} mayChange={mayDo(role, 'drive') && !readOnly} attempt={attempt} />
      </div>
    </main>
  )
}

interface NextRunProps {
  opened: OpenedSession
  mayChange: boolean
  attempt: (work: Promise<unknown>) => void
}

/** What the next run uses: model, thinking level and permission mode, and the cost so far. */
function NextRun({ opened: { session }, opened, mayChange, attempt }: NextRunProps): ReactNode {
  const config = useSelected(opened, () => session.state('config'))
  const cost = useSelected(opened, () => session.state('usage')?.cost ?? 0)
  if (!config) return null
  const { model, thinkingLevel, mode, modeReason, workspace } = config
  return (
    <div className="next-run" role="group" aria-label="Next run">
      {model && <span className="model">{model.modelId}</span>}
      <Choice
        name="Thinking level"
        shortName="Thinking"
        choices={levels}
        chosen={thinkingLevel}
        mayChange={mayChange}
        onChoose={(level) => attempt(session.set({ thinkingLevel: level }))}
      />
      <Choice
        name="Permission mode"
        shortName="Mode"
        choices={modes}
        chosen={mode}
        mayChange={mayChange}
        onChoose={(chosen) => attempt(session.set({ mode: chosen }))}
      />
      {cost > 0 && <span>${cost.toFixed(cost < 0.1 ? 4 : 2)}</span>}
      {workspace && (
        <span className={workspace.problem === undefined ? 'workspace' : 'workspace reason'}>
          {workspace.name} on {workspace.host}
          {workspace.problem !== undefined && `: ${workspace.problem}`}
        </span>
      )}
      {modeReason !== undefined && <span className="reason">No sandbox: {modeReason}</span>}
      <LanguageServers opened={opened} />
    </div>
  )
}

/** The language servers of the session's folder, with the number of errors. */
function LanguageServers({ opened, opened: { session } }: { opened: OpenedSession }): ReactNode {
  const servers = useSelected(opened, () => session.state('language_servers')) ?? []
  const [now, setNow] = useState(Date.now)
  const isCounting = servers.some((server) => isPausing(server, now))
  useEffect(() => {
    if (!isCounting) return undefined
    // The last tick may be long ago.
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isCounting])
  return servers.map((server) => {
    const { name, status, problem, errors } = server
    const hasProblem = status === 'failed' || errors > 0
    return (
      <span key={name} className={hasProblem ? 'language-server failed' : 'language-server'} title={problem}>
        {serverText(server, now)}
      </span>
    )
  })
}

/** A list to choose from, or only its value if the device may not change it. */
function Choice<T extends string>(props: {
  name: string
  /** In front of the value. */
  shortName: string
  choices: readonly T[]
  chosen: string | null
  mayChange: boolean
  onChoose: (chosen: T) => void
}): ReactNode {
  const { name, shortName, choices, chosen, mayChange, onChoose } = props
  if (chosen === null) return null
  if (!mayChange)
    return (
      <span title={name}>
        {shortName} {chosen}
      </span>
    )
  const known = choices.some((each) => each === chosen) ? choices : [...choices, chosen]
  return (
    <span title={name}>
      {shortName}
      <select aria-label={name} value={chosen} onChange={({ target }) => onChoose(target.value as T)}>
        {known.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </span>
  )
}

/** Says that the page is cut off, and for a moment that it was. */
function ConnectionNotice({ status }: { status: ConnectionStatus }): ReactNode {
  const { isLost, awaySeconds } = useAway(status)
  if (status.type === 'closed') return <p className="notice failed">{closedSentences[status.reason]}</p>
  if (status.type !== 'attached')
    return (
      <p className="notice" role="status">
        {isLost ? 'Connection lost. Reconnecting… Messages are kept and sent when it is back.' : 'Connecting…'}
      </p>
    )
  if (awaySeconds === undefined) return null
  return (
    <p className="notice good" role="status">
      Connected again after {awaySeconds} s. Nothing was missed.
    </p>
  )
}

const closedSentences = {
  closed: 'This session is closed.',
  unauthorized: 'The access of this device has ended. Pair it again.',
  forbidden: 'This device may not open this session.',
  gone: 'This session does not exist any more.',
  replaced: 'The session was opened in another tab. Reload to use it here.',
}
