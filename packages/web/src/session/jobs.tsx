import type { RestResults } from '@tapetree/client/types'
import { elapsedText } from '@tapetree/session/screen'
import type { Transcript } from '@tapetree/session/view'
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import { rest, sentenceOf } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import { outputText } from './content-text.ts'
import { useSelected, type OpenedSession } from './use-session.ts'
import './jobs.css'

type Job = RestResults['jobs']['jobs'][number]

interface JobsProps {
  opened: OpenedSession
  mayStop: boolean
  isOpen: boolean
  onToggle: (isOpen: boolean) => void
}

/** How often the page asks whether a running command has ended. */
const pollMs = 5000
/** A server answers earlier if there is output. */
const waitSeconds = 25

/** Commands in the background: one line while some run, and the list with their output when it is opened. */
export function Jobs({ opened, mayStop, isOpen, onToggle }: JobsProps): ReactNode {
  const { sessionId } = opened.session
  const load = useCallback(
    async (signal: AbortSignal) => ({ jobs: (await rest.jobs(sessionId, signal)).jobs, at: Date.now() }),
    [sessionId],
  )
  const { value, problem, reload } = useLoaded(load)
  const running = value?.jobs.filter(({ status }) => status === 'running') ?? []
  const calls = useSelected(opened, ({ session }) => newestCalls(session.transcript))
  const isAttached = useSelected(opened, ({ session }) => session.status.type === 'attached')
  useEffect(() => {
    if (isAttached) reload()
    // A call may have started or stopped a command.
  }, [calls, isAttached, isOpen])
  const isPolling = running.length > 0
  useEffect(() => {
    if (!isPolling) return undefined
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), pollMs)
    return () => clearInterval(timer)
  }, [isPolling, reload])

  if (!isOpen && running.length === 0) return null
  return (
    <section className="jobs" aria-label="Background commands">
      <button className="fold" aria-expanded={isOpen} onClick={() => onToggle(!isOpen)}>
        <span className={`sign ${running.length > 0 ? 'running' : 'done'}`} aria-hidden="true">
          ●
        </span>
        {countText(running.length)}
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
      </button>
      {isOpen && problem !== undefined && <p className="notice failed">{problem}</p>}
      {isOpen && value?.jobs.length === 0 && (
        <p className="faint">This session has no commands in the background. Those that ended are kept for a day.</p>
      )}
      {isOpen && value && value.jobs.length > 0 && (
        <ul>
          {value.jobs.map((job) => (
            <JobRow key={job.id} sessionId={sessionId} job={job} now={value.at} mayStop={mayStop} onChange={reload} />
          ))}
        </ul>
      )}
    </section>
  )
}

/**
 * Changes when a command gets a result. The result may arrive together with the answers that follow it, so the newest items are
 * searched.
 */
export function newestCalls({ path: { items } }: Transcript): string {
  for (let back = 1; back <= Math.min(searched, items.length); back++) {
    const item = items.at(-back)
    if (item?.type !== 'assistant') continue
    const results = item.parts.filter((part) => part.type === 'tool_call' && jobTools.has(part.name) && part.result)
    if (results.length > 0) return `${item.id} ${results.length}`
  }
  return ''
}

const searched = 50
const jobTools = new Set(['bash', 'job_kill'])

interface JobRowProps {
  sessionId: string
  job: Job
  /** When the list was loaded. */
  now: number
  mayStop: boolean
  onChange: () => void
}

function JobRow({ sessionId, job, now, mayStop, onChange }: JobRowProps): ReactNode {
  const { id, status } = job
  const isRunning = status === 'running'
  const [isToggled, setToggled] = useState(false)
  const [isStopping, setStopping] = useState(false)
  const [problem, setProblem] = useState<string>()
  // What runs is open.
  const [wasRunning] = useState(isRunning)
  const isOpen = wasRunning !== isToggled
  const name = job.command || id
  const stop = async (): Promise<void> => {
    setStopping(true)
    try {
      await rest.stopJob(sessionId, id)
    } catch (error) {
      setProblem(sentenceOf(error))
    }
    setStopping(false)
    onChange()
  }
  return (
    <li>
      <div className="job-head">
        <button className="fold" aria-expanded={isOpen} onClick={() => setToggled(!isToggled)}>
          <span className={`sign ${stateOf(job)}`} aria-hidden="true">
            {isRunning ? '●' : stateOf(job) === 'done' ? '✓' : '✗'}
          </span>
          <code>{name}</code>
          <span className="note">{noteOf(job, now)}</span>
        </button>
        {isRunning && mayStop && (
          <button className="no small" disabled={isStopping} aria-label={`Stop ${name}`} onClick={() => void stop()}>
            {isStopping ? 'Stopping…' : 'Stop'}
          </button>
        )}
      </div>
      {problem !== undefined && (
        <p className="notice failed" role="alert">
          {problem}
        </p>
      )}
      {isOpen && <JobOutput sessionId={sessionId} jobId={id} name={name} onEnd={onChange} />}
    </li>
  )
}

/** The newest output, live until the command ends. */
function JobOutput(given: { sessionId: string; jobId: string; name: string; onEnd: () => void }): ReactNode {
  const { sessionId, jobId, name, onEnd } = given
  const [shown, setShown] = useState<RestResults['job']>()
  const [problem, setProblem] = useState<string>()
  const place = useRef<HTMLPreElement>(null)
  const isAtEnd = useRef(true)
  const tellEnd = useRef(onEnd)
  tellEnd.current = onEnd
  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    const follow = async (): Promise<void> => {
      let now = await rest.job(sessionId, jobId, { signal })
      const didRun = now.job.status === 'running'
      setShown(now)
      while (now.job.status === 'running') {
        now = await rest.job(sessionId, jobId, { after: now.end, wait: waitSeconds, signal })
        setShown(now)
      }
      if (didRun) tellEnd.current()
    }
    follow().catch((error: unknown) => !signal.aborted && setProblem(sentenceOf(error)))
    return () => leaving.abort()
  }, [sessionId, jobId])
  useLayoutEffect(() => {
    if (place.current && isAtEnd.current) place.current.scrollTop = place.current.scrollHeight
  }, [shown])
  if (problem !== undefined) return <p className="notice failed">{problem}</p>
  if (!shown) return <p className="faint">Loading…</p>
  if (shown.output === '') return <p className="faint">It has printed nothing.</p>
  return (
    <>
      {shown.isCut && <p className="faint">Only the newest output is shown.</p>}
      <pre
        ref={place}
        className="output"
        tabIndex={0}
        role="region"
        aria-label={`Output of ${name}`}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
          (isAtEnd.current = scrollHeight - scrollTop - clientHeight < 4)
        }
      >
        {outputText(shown.output)}
      </pre>
    </>
  )
}

function countText(running: number): string {
  if (running === 0) return 'No command runs in the background'
  return running === 1 ? '1 command runs in the background' : `${running} commands run in the background`
}

function stateOf({ status, exit }: Job): 'running' | 'done' | 'failed' {
  if (status === 'running') return 'running'
  return exit?.cause === 'exited' && exit.code === 0 ? 'done' : 'failed'
}

function noteOf({ status, startedAt, exit }: Job, now: number): string {
  if (status === 'running') return `running ${elapsedText(now - Date.parse(startedAt))}`
  if (!exit) return 'outcome unknown'
  if (exit.cause !== 'exited') return exit.cause.replaceAll('-', ' ')
  return exit.signal === null ? `exit code ${exit.code}` : `ended by ${exit.signal}`
}
