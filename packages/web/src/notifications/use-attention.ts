import type { SessionSummary } from '@tapetree/client'
import { useEffect, useRef, useState } from 'react'
import { titleOf } from '../list/describe-session.ts'
import { sessionLink } from '../route.ts'

/** Counts waiting sessions in the title of the page, and notifies when one begins to wait. Returns a sentence for a live region. */
export function useAttention(sessions: readonly SessionSummary[]): string {
  const waiting = sessions.filter(({ status }) => status === 'requires_action')
  const known = useRef(new Set<string>())
  const [announcement, setAnnouncement] = useState('')
  const ids = waiting.map(({ id }) => id).join()
  useEffect(() => {
    document.title = waiting.length > 0 ? `(${waiting.length}) tapetree` : 'tapetree'
    const added = waiting.filter(({ id }) => !known.current.has(id))
    known.current = new Set(waiting.map(({ id }) => id))
    if (added.length > 0) setAnnouncement(added.map((each) => `${titleOf(each)} needs you.`).join(' '))
    for (const session of added) notifyOf(session)
    // `waiting` changes with every status; only the ids matter.
  }, [ids])
  return announcement
}

/** Only if the page is hidden. The service worker uses the same tag, so that a session has one notification. */
function notifyOf(session: SessionSummary): void {
  if (!('Notification' in globalThis) || Notification.permission !== 'granted') return
  if (document.visibilityState === 'visible') return
  try {
    const shown = new Notification(`${titleOf(session)} needs you`, { tag: session.id, icon: './icon-192.png' })
    shown.addEventListener('click', () => {
      focus()
      location.hash = sessionLink(session.id)
      shown.close()
    })
  } catch {
    // Android has only notifications of a service worker.
    void navigator.serviceWorker?.ready.then((registration) =>
      registration.showNotification(`${titleOf(session)} needs you`, {
        tag: session.id,
        icon: './icon-192.png',
        data: { sessionId: session.id },
      }),
    )
  }
}
