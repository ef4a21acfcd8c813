import { useEffect, useRef, type ReactNode } from 'react'
import { Dialog } from '../dialog.tsx'
import { ownCommands } from './completion.ts'

interface Shortcut {
  readonly keys: string
  readonly says: string
}

const shortcuts: readonly Shortcut[] = [
  { keys: 'Enter', says: 'Send the message; during a run, steer' },
  { keys: 'Shift+Enter', says: 'Begin a new line' },
  { keys: 'Ctrl+Enter', says: 'Queue the message for after the run' },
  { keys: '/', says: 'Go to the message field; in it, complete a command' },
  { keys: '@', says: 'Complete a file' },
  { keys: 'Ctrl+.', says: 'Stop the run' },
  { keys: 'End', says: 'Jump to the newest message' },
  { keys: '?', says: 'Show this help' },
]

/** Keys of the session screen. Letters and signs only count outside of fields. */
export function useShortcuts(actions: { help: () => void; stop: () => void; newest: () => void }): void {
  const latest = useRef(actions)
  latest.current = actions
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target, key } = event
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select, dialog *')
      if (key === '.' && (event.ctrlKey || event.metaKey)) latest.current.stop()
      else if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      else if (key === '?') latest.current.help()
      else if (key === '/') document.getElementById('message')?.focus()
      else if (key === 'End') latest.current.newest()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

export function Help({ onClose }: { onClose: () => void }): ReactNode {
  return (
    <Dialog title="Keys and commands" onClose={onClose}>
      <dl className="help">
        {shortcuts.map(({ keys, says }) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{says}</dd>
          </div>
        ))}
        {Object.entries(ownCommands).map(([name, { says }]) => (
          <div key={name}>
            <dt>
              <code>/{name}</code>
            </dt>
            <dd>{says}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
