import { isQuestion, ProblemError, type RemoteSession, type RequestAnswer } from '@tapetree/client'
import { permissionText } from '@tapetree/session/screen'
import type { PermissionRequest } from '@tapetree/session/view'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { Markdown } from '../markdown/markdown.tsx'
import { rest, sentenceOf } from '../server.ts'
import { Diff } from './diff.tsx'
import { changeOf } from './requested-change.ts'
import { useSelected, type OpenedSession } from './use-session.ts'

/** Pending permission requests and questions, the oldest first. Says when another screen answered. */
export function Requests({ opened, mayAnswer }: { opened: OpenedSession; mayAnswer: boolean }): ReactNode {
  const { session } = opened
  const permissions = useSelected(opened, () => session.transcript.permissions)
  const [notice, setNotice] = useState<string>()
  const [sentId, setSentId] = useState<string>()
  const own = useRef(new Set<string>())
  const request = permissions[0]
  const seen = useRef<string>(undefined)
  const currentId = request?.requestId
  const seenSeq = useRef(0)
  useEffect(() => {
    const before = seen.current
    seen.current = currentId
    if (before === undefined || before === currentId) return undefined
    if (own.current.has(before)) {
      setNotice(undefined)
      return undefined
    }
    setNotice('Answered on another screen.')
    let isCurrent = true
    void answererOf(session, { requestId: before, seq: seenSeq.current }).then(
      (name) => isCurrent && name !== undefined && setNotice(`Answered by ${name} on another screen.`),
      () => undefined,
    )
    return () => void (isCurrent = false)
  }, [currentId, session])
  useEffect(() => {
    if (request) seenSeq.current = request.seq
  }, [request])
  useEffect(() => {
    if (notice === undefined) return undefined
    const timer = setTimeout(() => setNotice(undefined), 6000)
    return () => clearTimeout(timer)
  }, [notice])

  const answer = async (requestId: string, given: RequestAnswer): Promise<void> => {
    own.current.add(requestId)
    setSentId(requestId)
    setNotice(undefined)
    try {
      await session.answer(requestId, given)
    } catch (error) {
      own.current.delete(requestId)
      const isLate = error instanceof ProblemError && error.type === 'already-resolved'
      const client = isLate ? clientName(session, error.problem['client']) : undefined
      const who = client === undefined ? '' : `by ${client} `
      setNotice(isLate ? `Answered ${who}on another screen before. Your answer had no effect.` : sentenceOf(error))
      setSentId(undefined)
    }
  }

  return (
    <>
      {notice !== undefined && (
        <p className="notice" role="status">
          {notice}
        </p>
      )}
      {request && (
        <Request
          key={request.requestId}
          request={request}
          others={permissions.length - 1}
          isSent={sentId === request.requestId}
          mayAnswer={mayAnswer}
          onAnswer={(given) => void answer(request.requestId, given)}
        />
      )}
    </>
  )
}

/** The name of an attached client. */
function clientName(session: RemoteSession, clientId: unknown): string | undefined {
  return session.state('presence')?.find(({ id }) => id === clientId)?.name
}

/** The record of the answer names the client. */
async function answererOf(
  session: RemoteSession,
  { requestId, seq }: { requestId: string; seq: number },
): Promise<string | undefined> {
  const { events } = await rest.events(session.sessionId, { after: seq, limit: 50 })
  for (const event of events) {
    const result = event['permission_result'] as { request_id?: string; client_id?: string } | undefined
    if (result?.request_id === requestId) return clientName(session, result.client_id)
  }
  return undefined
}

interface AnswerableProps {
  request: PermissionRequest
  isDisabled: boolean
  onAnswer: (answer: RequestAnswer) => void
}

interface RequestProps extends Omit<AnswerableProps, 'isDisabled'> {
  /** How many more are waiting. */
  others: number
  isSent: boolean
  mayAnswer: boolean
}

/** A click within this time was meant for what was there before. */
const quietMs = 400

export function Request({ request, others, isSent, mayAnswer, onAnswer }: RequestProps): ReactNode {
  const [isQuiet, setQuiet] = useState(true)
  useEffect(() => {
    const timer = setTimeout(() => setQuiet(false), quietMs)
    return () => clearTimeout(timer)
  }, [])
  const answerable = { request, isDisabled: isQuiet || isSent || !mayAnswer, onAnswer }
  const title = isQuestion(request) ? 'The agent asks' : `Allow ${request.tool}?`
  return (
    <section className="request" aria-label={title}>
      <h2>
        {title} {others > 0 && <span className="faint">1 of {others + 1}</span>}
      </h2>
      {isQuestion(request) ? <Question {...answerable} /> : <Permission {...answerable} />}
      {isSent && <p className="faint">Sending the answer…</p>}
      {!mayAnswer && <p className="faint">This device may not answer.</p>}
    </section>
  )
}

function Permission({ request, isDisabled, onAnswer }: AnswerableProps): ReactNode {
  const [isNoting, setNoting] = useState(false)
  const [note, setNote] = useState('')
  const { what, why, input } = permissionText(request)
  const change = changeOf(request)
  return (
    <>
      <div className="request-body" tabIndex={0}>
        <pre className="what">{what}</pre>
        {change && <Diff files={change.files} />}
        {(change?.others ?? input).map(({ name, text }) => (
          <div key={name}>
            <small>{name}</small>
            <pre>{text}</pre>
          </div>
        ))}
        {why !== '' && <p className="faint plain">{why}</p>}
      </div>
      {isNoting ? (
        <form
          className="note-form"
          onSubmit={(event) => {
            event.preventDefault()
            onAnswer({ outcome: 'rejected', ...(note.trim() !== '' && { text: note }) })
          }}
        >
          <label className="field">
            Why not?
            <input value={note} autoFocus onChange={(event) => setNote(event.target.value)} />
          </label>
          <div className="buttons">
            <button disabled={isDisabled}>Do not allow</button>
            <button type="button" className="quiet" onClick={() => setNoting(false)}>
              Back
            </button>
          </div>
        </form>
      ) : (
        <div className="buttons">
          {request.options.map(({ optionId, label, kind }) => (
            <button
              key={optionId}
              disabled={isDisabled}
              className={kind === 'allow_once' ? 'yes' : kind.startsWith('reject') ? 'no' : 'quiet'}
              onClick={() => onAnswer({ optionId })}
            >
              {label}
            </button>
          ))}
          <button className="quiet" disabled={isDisabled} onClick={() => setNoting(true)}>
            Deny with a note
          </button>
        </div>
      )}
    </>
  )
}

function Question({ request, isDisabled, onAnswer }: AnswerableProps): ReactNode {
  const [text, setText] = useState('')
  const question = request.input?.['question']
  return (
    <>
      <div className="request-body" tabIndex={0}>
        <Markdown text={typeof question === 'string' ? question : request.title} />
      </div>
      <div className="buttons">
        {request.options.map(({ optionId, label }) => (
          <button key={optionId} className="quiet" disabled={isDisabled} onClick={() => onAnswer({ optionId })}>
            {label}
          </button>
        ))}
      </div>
      <form
        className="with-button own-answer"
        onSubmit={(event) => {
          event.preventDefault()
          if (text.trim() !== '') onAnswer({ outcome: 'allowed', text })
        }}
      >
        <label className="field">
          In your own words
          <textarea rows={1} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
        <div className="buttons">
          <button disabled={isDisabled || text.trim() === ''}>Answer</button>
          <button
            type="button"
            className="quiet"
            disabled={isDisabled}
            onClick={() => onAnswer({ outcome: 'rejected' })}
          >
            No answer
          </button>
        </div>
      </form>
    </>
  )
}
