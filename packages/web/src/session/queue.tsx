import type { WaitingMessage } from '@tapetree/session'
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { mayDo, sentenceOf, type Role } from '../server.ts'
import type { SentMessage } from './sent-messages.ts'
import { useSelected, type OpenedSession } from './use-session.ts'

interface QueueProps {
  opened: OpenedSession
  role: Role
  /** Puts a message back into the composer. */
  onEdit: (text: string) => void
  onProblem: (sentence: string) => void
}

/** Queued messages of everyone, and the messages of this page that are not delivered yet. */
export function Queue({ opened, role, onEdit, onProblem }: QueueProps): ReactNode {
  const { session, sent } = opened
  const waiting = useSelected(opened, () => session.transcript.waiting)
  const hold = useSelected(opened, () => session.transcript.hold)
  const own = useSelected(opened, () => sent.messages).filter(({ state }) => state !== 'queued')
  const [announced, setAnnounced] = useState('')
  const attempt = (work: Promise<unknown>): void => void work.catch((error: unknown) => onProblem(sentenceOf(error)))
  const list = useRef<HTMLUListElement>(null)
  const [dragged, setDragged] = useState<{ id: string; to: number }>()
  const moveTo = (id: string, to: number): void => {
    const others = waiting.filter((each) => each.id !== id)
    if (waiting.findIndex((each) => each.id === id) === to) return
    attempt(session.changeQueue('queue.move', { id, beforeId: others[to]?.id ?? null }))
    setAnnounced(`Moved to place ${to + 1} of ${waiting.length}.`)
  }
  const drop = useRef(moveTo)
  drop.current = moveTo
  const draggedId = dragged?.id
  // On the window: the dragged element moves in the list, and would lose the pointer.
  useEffect(() => {
    if (draggedId === undefined) return undefined
    const move = (event: PointerEvent): void => setDragged({ id: draggedId, to: placeOf(list.current, event) })
    const end = (event: PointerEvent): void => {
      if (event.type === 'pointerup') drop.current(draggedId, placeOf(list.current, event))
      setDragged(undefined)
    }
    addEventListener('pointermove', move)
    addEventListener('pointerup', end)
    addEventListener('pointercancel', end)
    return () => {
      removeEventListener('pointermove', move)
      removeEventListener('pointerup', end)
      removeEventListener('pointercancel', end)
    }
  }, [draggedId])
  if (waiting.length === 0 && own.length === 0) return null
  const shown = dragged ? moved(waiting, dragged) : waiting

  return (
    <section className="queue" aria-label="Messages on their way">
      {waiting.length > 0 && (
        <div className="queue-head">
          <span>{hold ? `Held: ${hold.reason}` : `${waiting.length} queued`}</span>
          {hold ? (
            mayDo(role, 'drive') && (
              <button className="quiet tiny" onClick={() => attempt(session.changeQueue('queue.release', {}))}>
                Release all
              </button>
            )
          ) : (
            <button
              className="quiet tiny"
              onClick={() => attempt(session.changeQueue('queue.hold', { reason: 'held by a person' }))}
            >
              Hold all
            </button>
          )}
        </div>
      )}
      <ul className="outbox" ref={list}>
        {shown.map((message, index) => (
          <QueuedMessage
            key={message.id}
            message={message}
            isHeld={message.held || hold !== null}
            isDragged={dragged?.id === message.id}
            mayRelease={mayDo(role, 'drive')}
            change={(op) => attempt(session.changeQueue(op, { id: message.id }))}
            save={(text) =>
              attempt(
                session.changeQueue('queue.edit', { id: message.id, message: text }).catch((error: unknown) => {
                  onEdit(text)
                  throw error
                }),
              )
            }
            onLeave={onEdit}
            handle={{
              onKeyDown: (event) => {
                const by = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : 0
                if (by === 0) return
                event.preventDefault()
                const to = index + by
                if (to >= 0 && to < waiting.length) moveTo(message.id, to)
              },
              onPointerDown: () => setDragged({ id: message.id, to: index }),
            }}
          />
        ))}
        {own.map((message) => (
          <OwnMessage
            key={message.id}
            message={message}
            onDismiss={() => sent.dismiss(message.id)}
            onEdit={() => {
              sent.dismiss(message.id)
              onEdit(message.text)
            }}
          />
        ))}
      </ul>
      <p className="unseen" role="status">
        {announced}
      </p>
    </section>
  )
}

/** The place that the pointer is at, among the messages that are not dragged. */
function placeOf(list: HTMLElement | null, { clientY }: PointerEvent): number {
  const others = [...(list?.querySelectorAll('li.queued:not(.dragged)') ?? [])]
  const above = others.filter((row) => {
    const { top, height } = row.getBoundingClientRect()
    return clientY > top + height / 2
  })
  return above.length
}

/** The list as it will be when the message is dropped. */
function moved(waiting: readonly WaitingMessage[], { id, to }: { id: string; to: number }): readonly WaitingMessage[] {
  const others = waiting.filter((each) => each.id !== id)
  const message = waiting.find((each) => each.id === id)
  return message ? others.toSpliced(to, 0, message) : waiting
}

/** A phone has place only for the icon. */
function ButtonText({ name, icon }: { name: string; icon: string }): ReactNode {
  return (
    <>
      <span className="name">{name}</span>
      <span className="icon" aria-hidden="true">
        {icon}
      </span>
    </>
  )
}

interface QueuedMessageProps {
  message: WaitingMessage
  isHeld: boolean
  isDragged: boolean
  mayRelease: boolean
  change: (op: 'queue.hold' | 'queue.release' | 'queue.remove') => void
  save: (text: string) => void
  /** Gets an edit that is not saved when the message leaves the queue. */
  onLeave: (text: string) => void
  handle: {
    onKeyDown: (event: KeyboardEvent) => void
    onPointerDown: () => void
  }
}

function QueuedMessage(props: QueuedMessageProps): ReactNode {
  const { message, isHeld, isDragged, mayRelease, change, save, onLeave, handle } = props
  const [draft, setDraft] = useState<string>()
  const { message: text, delivery, held, imageIds } = message
  const unsaved = useRef<() => void>(undefined)
  unsaved.current = draft === undefined || draft === text ? undefined : () => onLeave(draft)
  useEffect(() => () => unsaved.current?.(), [])
  const about = text.slice(0, 40)
  return (
    <li className={isDragged ? 'queued dragged' : 'queued'}>
      <button
        className="quiet handle"
        aria-label={`Move ${about}`}
        aria-keyshortcuts="ArrowUp ArrowDown"
        title="Drag, or use the arrow keys"
        {...handle}
      >
        ⠿
      </button>
      <span className="state">{isHeld ? 'Held' : delivery === 'steer' ? 'Steers soon' : 'Queued'}</span>
      {draft === undefined ? (
        <>
          <span className="plain">
            {text}
            {imageIds.length > 0 && <small>{imageIds.length === 1 ? '1 image' : `${imageIds.length} images`}</small>}
          </span>
          <span className="queue-buttons">
            <button className="quiet tiny" aria-label={`Edit ${about}`} onClick={() => setDraft(text)}>
              <ButtonText name="Edit" icon="✎" />
            </button>
            {(!held || mayRelease) && (
              <button
                className="quiet tiny"
                aria-label={`${held ? 'Release' : 'Hold'} ${about}`}
                onClick={() => change(held ? 'queue.release' : 'queue.hold')}
              >
                {held ? <ButtonText name="Release" icon="▶" /> : <ButtonText name="Hold" icon="❚❚" />}
              </button>
            )}
            <button className="quiet tiny" aria-label={`Remove ${about}`} onClick={() => change('queue.remove')}>
              <ButtonText name="Remove" icon="✕" />
            </button>
          </span>
        </>
      ) : (
        <form
          className="queue-edit"
          onSubmit={(event) => {
            event.preventDefault()
            if (draft.trim() !== '' && draft !== text) save(draft)
            setDraft(undefined)
          }}
        >
          <textarea
            aria-label="Queued message"
            autoFocus
            rows={2}
            value={draft}
            onChange={(event) => setDraft(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return
              event.stopPropagation()
              setDraft(undefined)
            }}
          />
          <button className="tiny">Save</button>
          <button type="button" className="quiet tiny" onClick={() => setDraft(undefined)}>
            Cancel
          </button>
        </form>
      )}
    </li>
  )
}

function OwnMessage({
  message: { text, state, reason },
  onEdit,
  onDismiss,
}: {
  message: SentMessage
  onEdit: () => void
  onDismiss: () => void
}): ReactNode {
  return (
    <li className={state}>
      <span className="state">{stateLabels[state]}</span>
      <span className="plain">
        {text}
        {reason !== undefined && <small>{reason}</small>}
      </span>
      {state !== 'unsent' && (
        <span className="queue-buttons">
          {state !== 'answered' && (
            <button className="quiet tiny" onClick={onEdit}>
              Edit
            </button>
          )}
          <button className="quiet tiny" onClick={onDismiss}>
            Dismiss
          </button>
        </span>
      )}
    </li>
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
