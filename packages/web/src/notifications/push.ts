import { rest } from '../server.ts'

/** Under the policy of the server, only this policy makes the URL of a script, and only of this one. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: () => string }): { createScriptURL(url: string): string }
}

const policy = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('service-worker', {
  createScriptURL: () => './sw.js',
})

/** Rejects with a sentence if this browser has no service workers here. */
export async function registerWorker(): Promise<ServiceWorkerRegistration> {
  if (!isSecureContext)
    throw new Error('The page has no HTTPS. Browsers allow service workers only with HTTPS, or on this computer.')
  if (!('serviceWorker' in navigator)) throw new Error('This browser has no service workers, or a private window.')
  try {
    const url = policy?.createScriptURL('') ?? './sw.js'
    await navigator.serviceWorker.register(url)
    return await navigator.serviceWorker.ready
  } catch (error) {
    const isCertificate = location.protocol === 'https:'
    throw new Error(
      isCertificate
        ? 'The browser refused the service worker. With a self-signed certificate it always does, even if you accepted it: use a trusted certificate, or a TLS proxy.'
        : 'The browser refused the service worker.',
      { cause: error },
    )
  }
}

async function currentSubscription(): Promise<PushSubscription | null> {
  return (await registerWorker()).pushManager.getSubscription()
}

/** Tells the server again if this browser is subscribed: a subscription ends with its token, and this page may have a new one. */
export async function renewSubscription(): Promise<boolean> {
  const subscription = await currentSubscription()
  if (subscription) await tellServer(subscription)
  return subscription !== null
}

/** Asks for permission, subscribes, and tells the server. */
export async function subscribe(): Promise<void> {
  const registration = await registerWorker()
  if (!('pushManager' in registration)) throw new Error('This browser has no push messages.')
  if ((await Notification.requestPermission()) !== 'granted')
    throw new Error('Notifications are not allowed. Allow them in the settings of the browser for this page.')
  const applicationServerKey = await rest.pushKey()
  let made: PushSubscription
  try {
    made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
  } catch (cause) {
    throw new Error(
      'The browser could not reach its push service. Some browsers have none, and some networks block it.',
      { cause },
    )
  }
  await tellServer(made)
}

/** The same subscription twice is one. */
async function tellServer(subscription: PushSubscription): Promise<void> {
  const { endpoint = '', keys = {} } = subscription.toJSON()
  const { p256dh = '', auth = '' } = keys
  await rest.subscribePush({ endpoint, keys: { p256dh, auth } })
}

export async function unsubscribe(): Promise<void> {
  const subscription = await currentSubscription()
  if (!subscription) return
  const { origin } = new URL(subscription.endpoint)
  const { subscriptions } = await rest.pushSubscriptions()
  await subscription.unsubscribe()
  for (const { id, service } of subscriptions) if (service === origin) await rest.unsubscribePush(id)
}
