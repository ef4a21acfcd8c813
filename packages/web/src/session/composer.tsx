import { newId } from '@tapetree/session'
import { useState, type KeyboardEvent, type ReactNode } from 'react'
import { mayDo, sentenceOf, storage, type Role } from '../server.ts'
import type { SentMessage } from './sent-messages.ts'
import { useSelected, type OpenedSession } from './use-session.ts'

interface ComposerProps {
  opened: OpenedSession
  role: Role
  isRunning: boolean
  onProblem: (sentence: string) => void
}

/** How a message is delivered: `prompt` starts a run, `steer` joins the current one, `follow_up` waits for its end. */
type Way = 'prompt' | 'steer' | 'follow_up'

export function Composer({ opened, role, isRunning, onProblem }: ComposerProps): ReactNode {
  const { session, sent } = opened
  const draftKey = `tapetree-draft-${session.sessionId}`
  const [text, setText] = useState(() => storage(() => sessionStorage.getItem(draftKey)) ?? '')
  const write = (next: string): void => {
    setText(next)
    storage(() => sessionStorage.setItem(draftKey, next))
  }
  if (!mayDo(role, 'queue')) return <p className="faint padded">This device may only watch.</p>
  const mayDrive = mayDo(role, 'drive')
  const usual: Way = !mayDrive ? 'follow_up' : isRunning ? 'steer' : 'prompt'

  const send = (way: Way): void => {
    if (text.trim() === '') return
    const message = text
    write('')
    void sent.send(message, newId(), (id) => {
      if (way === 'steer') return session.steer(message, { id })
      return way === 'follow_up' ? session.followUp(message, { id }) : session.prompt(message, { id })
    })
  }
  const onKey = (event: KeyboardEvent): void => {
    const isPlain = !event.shiftKey && !event.altKey && !event.nativeEvent.isComposing
    // On a phone, Enter is the only way to begin a line.
    const hasKeyboard = matchMedia('(hover: hover)').matches
    if (event.key !== 'Enter' || !isPlain || !hasKeyboard) return
    event.preventDefault()
    send(event.ctrlKey || event.metaKey ? (isRunning ? 'follow_up' : usual) : usual)
  }

  return (
    <>
      <Outbox
        opened={opened}
        onEdit={(message) => write(text === '' ? message : `${message}\n${text}`)}
        onProblem={onProblem}
      />
      <form
        className="composer"
        onSubmit={(event) => {
          event.preventDefault()
          send(usual)
        }}
      >
        <textarea
          aria-label="Message"
          placeholder={isRunning ? 'Steer the agent, or queue a message' : 'Message the agent'}
          rows={1}
          value={text}
          onChange={(event) => write(event.target.value)}
          onKeyDown={onKey}
        />
        <div className="composer-buttons">
          {isRunning && mayDrive && (
            <button
              type="button"
              className="no"
              onClick={() => void session.abort().catch((error: unknown) => onProblem(sentenceOf(error)))}
            >
              Stop
            </button>
          )}
          {isRunning && (
            <button
              type="button"
              className="quiet"
              disabled={text.trim() === ''}
              title="Deliver it after this run"
              onClick={() => send('follow_up')}
            >
              Queue
            </button>
          )}
          {(!isRunning || mayDrive) && (
            <button disabled={text.trim() === ''} title={isRunning ? 'Deliver it during this run' : undefined}>
              {usual === 'steer' ? 'Steer' : usual === 'prompt' ? 'Send' : 'Queue'}
            </button>
          )}
        </div>
      </form>
    </>
  )
}

/** Queued messages of everyone, and the messages of this page that are not delivered yet. */
function Outbox({
  opened,
  onEdit,
  onProblem,
}: Pick<ComposerProps, 'opened' | 'onProblem'> & { onEdit: (text: string) => void }): ReactNode {
  const { session, sent } = opened
  const waiting = useSelected(opened, () => session.transcript.waiting)
  const hold = useSelected(opened, () => session.transcript.hold)
  const own = useSelected(opened, () => sent.messages).filter(({ state }) => state !== 'queued')
  if (waiting.length === 0 && own.length === 0) return null
  const withdraw = (id: string): void =>
    void session.changeQueue('queue.remove', { id }).catch((error: unknown) => onProblem(sentenceOf(error)))
  return (
    <ul className="outbox" aria-label="Messages on their way">
      {waiting.map(({ id, message, delivery, held }) => (
        <li key={id}>
          <span className="state">{held || hold ? 'Held' : delivery === 'steer' ? 'Steers soon' : 'Queued'}</span>
          <span className="plain">{message}</span>
          <button className="quiet tiny" onClick={() => withdraw(id)}>
            Withdraw
          </button>
        </li>
      ))}
      {own.map(({ id, text, state, reason }) => (
        <li key={id} className={state}>
          <span className="state">{stateLabels[state]}</span>
          <span className="plain">
            {text}
            {reason !== undefined && <small>{reason}</small>}
          </span>
          {state !== 'unsent' && (
            <>
              {state !== 'answered' && (
                <button
                  className="quiet tiny"
                  onClick={() => {
                    sent.dismiss(id)
                    onEdit(text)
                  }}
                >
                  Edit
                </button>
              )}
              <button className="quiet tiny" onClick={() => sent.dismiss(id)}>
                Dismiss
              </button>
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

const stateLabels: Record<SentMessage['state'], string> = {
  unsent: 'Unsent',
  accepted: 'Accepted',
  queued: 'Queued',
  withdrawn: 'Withdrawn',
  refused: 'Refused',
  answered: 'Done',
}
