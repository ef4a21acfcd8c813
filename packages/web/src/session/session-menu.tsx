import { useEffect, useRef, useState, type ReactNode } from 'react'
import { screenLink } from '../route.ts'

const screens = [
  { screen: 'tree', name: 'Tree' },
  { screen: 'player', name: 'Player' },
  { screen: 'context', name: 'What the model saw' },
] as const

interface SessionMenuProps {
  sessionId: string
  onJobs: () => void
  /** Absent: this device may not see them. */
  onBlocked: (() => void) | undefined
}

/** Links from a session to its other screens, its background commands and its blocked writes. */
export function SessionMenu({ sessionId, onJobs, onBlocked }: SessionMenuProps): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!isOpen) return undefined
    const close = ({ target }: Event): void => {
      if (!(target instanceof Node && place.current?.contains(target))) setOpen(false)
    }
    addEventListener('pointerdown', close)
    addEventListener('focusin', close)
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('focusin', close)
    }
  }, [isOpen])
  return (
    <div
      className="session-menu"
      ref={place}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return
        setOpen(false)
        place.current?.querySelector('button')?.focus()
      }}
    >
      <button className="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Views
      </button>
      {isOpen && (
        <ul>
          {screens.map(({ screen, name }) => (
            <li key={screen}>
              <a href={screenLink(sessionId, screen)}>{name}</a>
            </li>
          ))}
          {[
            { name: 'Background commands', onOpen: onJobs },
            ...(onBlocked ? [{ name: 'Blocked writes', onOpen: onBlocked }] : []),
          ].map(({ name, onOpen }) => (
            <li key={name}>
              <button
                className="fold"
                onClick={() => {
                  setOpen(false)
                  onOpen()
                }}
              >
                {name}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
