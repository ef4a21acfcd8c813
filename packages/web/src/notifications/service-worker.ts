/** Shows push messages of the server as notifications. It caches nothing: the app needs its server anyway. */

/** The part of `ServiceWorkerGlobalScope` that is used: its types and those of a page exclude each other. */
interface WorkerScope {
  registration: ServiceWorkerRegistration
  clients: {
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<WindowClientLike[]>
    openWindow(url: string): Promise<unknown>
    claim(): Promise<void>
  }
  skipWaiting(): Promise<void>
  addEventListener(type: 'install' | 'activate', listener: (event: WaitingEvent) => void): void
  addEventListener(type: 'push', listener: (event: WaitingEvent & { data: { json(): unknown } | null }) => void): void
  addEventListener(
    type: 'notificationclick',
    listener: (event: WaitingEvent & { notification: Notification }) => void,
  ): void
}

interface WaitingEvent {
  waitUntil(work: Promise<unknown>): void
}

interface WindowClientLike {
  url: string
  focus(): Promise<unknown>
  navigate(url: string): Promise<unknown>
}

interface PushMessage {
  session_id?: string
  name?: string
  needs?: string
}

const worker = globalThis as unknown as WorkerScope

const texts: Readonly<Record<string, string>> = {
  permission: 'asks for permission',
  question: 'has a question',
  finished: 'is done',
  failed: 'has failed',
}

worker.addEventListener('install', (event) => event.waitUntil(worker.skipWaiting()))
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()))

// Every message must show a notification: browsers end subscriptions that do not.
worker.addEventListener('push', (event) => {
  const { session_id: sessionId, name, needs = '' } = readMessage(event.data)
  const title = `${name ?? 'A session'} ${texts[needs] ?? 'needs you'}`
  event.waitUntil(
    worker.registration.showNotification(title, {
      tag: sessionId ?? 'tapetree',
      icon: './icon-192.png',
      badge: './icon-192.png',
      data: { sessionId },
    }),
  )
})

worker.addEventListener('notificationclick', (event) => {
  event.notification.close()
  const { sessionId } = (event.notification.data ?? {}) as { sessionId?: string }
  event.waitUntil(open(sessionId))
})

function readMessage(data: { json(): unknown } | null): PushMessage {
  try {
    return data?.json() ?? {}
  } catch {
    return {}
  }
}

async function open(sessionId: string | undefined): Promise<void> {
  const url = worker.registration.scope + (sessionId === undefined ? '' : `#/sessions/${encodeURIComponent(sessionId)}`)
  const [page] = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
  if (!page) return void (await worker.clients.openWindow(url))
  await page.focus()
  await page.navigate(url)
}
