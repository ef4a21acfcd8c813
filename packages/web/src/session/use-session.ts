import { indexedDbStorage, RemoteSession, type SessionChange } from '@tapetree/client'
import type { TranscriptRow } from '@tapetree/session/screen'
import type { AssistantPart, ToolCallPart } from '@tapetree/session/view'
import { createContext, useContext, useEffect, useState, useSyncExternalStore, type ComponentType } from 'react'
import { baseUrl, rest } from '../server.ts'
import { History } from './history.ts'
import { SentMessages } from './sent-messages.ts'

/** A session that is open on this page, and the messages that were sent to it from here. */
export interface OpenedSession {
  readonly session: RemoteSession
  readonly sent: SentMessages
  readonly history: History
  readonly subscribe: (listener: () => void) => () => void
}

/** The session whose transcript a row belongs to. */
export const OpenedContext = createContext<OpenedSession | undefined>(undefined)

/** Draws a row. Rows contain calls, and the call of a subagent contains rows. */
export const RowContext = createContext<ComponentType<{ row: TranscriptRow }> | undefined>(undefined)

/** Goes back to before a message of the user. Absent if this device may not, or the rows are of another session. */
export const GoBackContext = createContext<((entryId: string) => void) | undefined>(undefined)

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

/** Draws again when the value changes, which must be a primitive or keep its identity, as the members of a transcript do. */
export function useSelected<T>(opened: OpenedSession, select: (opened: OpenedSession) => T): T {
  return useSyncExternalStore(opened.subscribe, () => select(opened))
}

/** Like `useSelected`, for a row. Undefined if its transcript is not that of an open session. */
export function useRowState<T>(select: (opened: OpenedSession) => T): T | undefined {
  const opened = useContext(OpenedContext)
  return useSyncExternalStore(opened?.subscribe ?? never, () => opened && select(opened))
}

function never(): () => void {
  return () => undefined
}

/** The address of an image of a session. */
export function blobUrl(sessionId: string, sha256: string): string {
  return `api/sessions/${encodeURIComponent(sessionId)}/blobs/${encodeURIComponent(sha256)}`
}

export function isRunning({ session }: OpenedSession): boolean {
  return session.state('run')?.isBusy ?? session.transcript.run !== null
}

/** Whether a call is waiting or running. A call before the last message of the user is not, even if it has no result. */
export function isLive(opened: OpenedSession, call: ToolCallPart): boolean {
  if (call.result || !isRunning(opened)) return false
  const { items } = opened.session.transcript.path
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items.at(index)
    if (item?.type === 'user') return false
    if (item?.type === 'assistant' && item.parts.some((part) => isSameCall(part, call))) return true
  }
  return false
}

function isSameCall(part: AssistantPart, { callId }: ToolCallPart): boolean {
  return part.type === 'tool_call' && part.callId === callId
}

async function openSession(sessionId: string): Promise<OpenedSession> {
  const storage = indexedDbStorage()
  // Read before the session sends them again.
  const restored = await storage.load(sessionId).catch(() => [])
  const session = await RemoteSession.open({ baseUrl, sessionId, storage, client: { name: deviceName(), kind: 'web' } })
  const sent = new SentMessages(restored)
  const history = new History((query) => rest.entries(sessionId, query))
  const { subscribe, notify } = onceAFrame()
  session.subscribe((change: SessionChange) => {
    if (change.type === 'late_ack') sent.settle(change.ack.id, change.ack.ok ? undefined : problemText(change.ack))
    if (change.type === 'transcript') sent.look(session.transcript)
    notify()
  })
  sent.onChange = notify
  history.onChange = notify
  return { session, sent, history, subscribe }
}

/** `Chrome on Android`: other screens say who answered. */
function deviceName(): string {
  const { userAgent } = navigator
  const named = (all: readonly string[]): string | undefined => all.find((each) => userAgent.includes(each))
  const browser = named(['Firefox', 'Edg', 'Chrome', 'Safari'])?.replace('Edg', 'Edge') ?? 'A browser'
  const system = named(['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS', 'Linux'])
  return system === undefined ? browser : `${browser} on ${system}`
}

function problemText({ error }: Extract<SessionChange, { type: 'late_ack' }>['ack']): string {
  return error?.detail ?? error?.title ?? 'The server refused it.'
}

/** Many lines may arrive at once: they are drawn together. A hidden page has no frames. */
function onceAFrame(): { subscribe: OpenedSession['subscribe']; notify: () => void } {
  const listeners = new Set<() => void>()
  let isPlanned = false
  const tell = (): void => {
    isPlanned = false
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
  }
}
