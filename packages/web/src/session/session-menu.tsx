import { useEffect, useRef, useState, type ReactNode } from 'react'
import { screenLink } from '../route.ts'

const screens = [
  { screen: 'tree', name: 'Tree' },
  { screen: 'player', name: 'Player' },
  { screen: 'context', name: 'What the model saw' },
] as const

/** Links from a session to its other screens, and its background commands. */
export function SessionMenu({ sessionId, onJobs }: { sessionId: string; onJobs: () => void }): ReactNode {
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
          <li>
            <button
              className="fold"
              onClick={() => {
                setOpen(false)
                onJobs()
              }}
            >
              Background commands
            </button>
          </li>
        </ul>
      )}
    </div>
  )
}
