import { indexedDbStorage, RemoteSession, type SessionChange } from '@tapetree/client'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { baseUrl } from '../server.ts'
import { SentMessages } from './sent-messages.ts'

/** A session that is open on this page, and the messages that were sent to it from here. */
export interface OpenedSession {
  readonly session: RemoteSession
  readonly sent: SentMessages
  readonly subscribe: (listener: () => void) => () => void
  /** Changes with everything that can be drawn. */
  readonly version: () => number
}

/** Undefined until the commands of an earlier visit are restored. */
export function useSession(sessionId: string): OpenedSession | undefined {
  const [opened, setOpened] = useState<OpenedSession>()
  useEffect(() => {
    let isCurrent = true
    const opening = openSession(sessionId)
    void opening.then((each) => isCurrent && setOpened(each))
    const tell = (): void => {
      const visibility = document.visibilityState === 'visible' ? 'visible' : 'hidden'
      void opening.then(({ session }) => session.present({ visibility }))
    }
    tell()
    document.addEventListener('visibilitychange', tell)
    return () => {
      isCurrent = false
      document.removeEventListener('visibilitychange', tell)
      void opening.then(({ session }) => session.close())
    }
  }, [sessionId])
  return opened
}

/** Draws again when the session changes. */
export function useChanges({ subscribe, version }: OpenedSession): void {
  useSyncExternalStore(subscribe, version)
}

async function openSession(sessionId: string): Promise<OpenedSession> {
  const storage = indexedDbStorage()
  // Read before the session sends them again.
  const restored = await storage.load(sessionId).catch(() => [])
  const session = await RemoteSession.open({ baseUrl, sessionId, storage, client: { name: 'web', kind: 'web' } })
  const sent = new SentMessages(restored)
  const { subscribe, notify, version } = onceAFrame()
  session.subscribe((change: SessionChange) => {
    if (change.type === 'late_ack') sent.settle(change.ack.id, change.ack.ok ? undefined : problemText(change.ack))
    if (change.type === 'transcript') sent.look(session.transcript)
    notify()
  })
  sent.onChange = notify
  return { session, sent, subscribe, version }
}

function problemText({ error }: Extract<SessionChange, { type: 'late_ack' }>['ack']): string {
  return error?.detail ?? error?.title ?? 'The server refused it.'
}

/** Many lines may arrive at once: they are drawn together. A hidden page has no frames. */
function onceAFrame(): { subscribe: OpenedSession['subscribe']; notify: () => void; version: () => number } {
  const listeners = new Set<() => void>()
  let version = 0
  let isPlanned = false
  const tell = (): void => {
    isPlanned = false
    version++
    for (const listener of listeners) listener()
  }
  return {
    subscribe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    notify: () => {
      if (isPlanned) return
      isPlanned = true
      if (document.visibilityState === 'visible') requestAnimationFrame(tell)
      else setTimeout(tell, 250)
    },
    version: () => version,
  }
}
