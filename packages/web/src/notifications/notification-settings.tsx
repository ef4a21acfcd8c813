import { useCallback, useState, type ReactNode } from 'react'
import { sentenceOf } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import { registerWorker, renewSubscription, subscribe, unsubscribe } from './push.ts'

/** What is on, what is off and why. Each is judged by trying it. */
export function NotificationSettings(): ReactNode {
  return (
    <section className="card" aria-labelledby="notifications">
      <h2 id="notifications">When a session needs you</h2>
      <ul className="features">
        <li>
          <div>
            <b>In this page</b>
            <small>The title counts the sessions that wait, and a screen reader announces them.</small>
          </div>
          <span className="tag">On</span>
        </li>
        <SystemNotifications />
        <PushMessages />
        <Installation />
      </ul>
    </section>
  )
}

function SystemNotifications(): ReactNode {
  const [permission, setPermission] = useState(() =>
    'Notification' in globalThis && isSecureContext ? Notification.permission : undefined,
  )
  const sentence =
    permission === undefined
      ? 'Off: the browser offers them only to pages with HTTPS, or on this computer.'
      : permission === 'denied'
        ? 'Off: you blocked them. Allow them in the settings of the browser for this page.'
        : permission === 'granted'
          ? 'Shown while this page is open in the background.'
          : 'Off: the browser has not been asked yet.'
  return (
    <li>
      <div>
        <b>Notifications of the system</b>
        <small>{sentence}</small>
      </div>
      {permission === 'default' ? (
        <button className="small" onClick={() => void Notification.requestPermission().then(setPermission)}>
          Allow notifications
        </button>
      ) : (
        <span className="tag">{permission === 'granted' ? 'On' : 'Off'}</span>
      )}
    </li>
  )
}

function PushMessages(): ReactNode {
  const load = useCallback(async () => {
    try {
      return { isOn: await renewSubscription() }
    } catch (error) {
      return { isOn: false, reason: sentenceOf(error) }
    }
  }, [])
  const { value, reload } = useLoaded(load)
  const [problem, setProblem] = useState<string>()
  const change = async (work: () => Promise<void>): Promise<void> => {
    setProblem(undefined)
    try {
      await work()
    } catch (error) {
      setProblem(sentenceOf(error))
    }
    reload()
  }
  const reason = problem ?? value?.reason
  return (
    <li>
      <div>
        <b>Push messages to this device</b>
        <small role="status">
          {value === undefined
            ? 'Trying…'
            : value.isOn
              ? 'Sent also while no page is open, through the push service of the browser, encrypted.'
              : `Off${reason === undefined ? '. They also arrive while no page is open.' : `: ${reason}`}`}
        </small>
      </div>
      {value?.isOn ? (
        <button className="quiet small" onClick={() => void change(unsubscribe)}>
          Turn off push messages
        </button>
      ) : value && value.reason === undefined ? (
        <button className="small" onClick={() => void change(subscribe)}>
          Turn on push messages
        </button>
      ) : (
        <span className="tag">Off</span>
      )}
    </li>
  )
}

function Installation(): ReactNode {
  const load = useCallback(async () => {
    if (matchMedia('(display-mode: standalone)').matches) return { state: 'Installed', sentence: 'It runs as an app.' }
    try {
      await registerWorker()
      return { state: 'Possible', sentence: 'Choose “Install” or “Add to home screen” in the menu of the browser.' }
    } catch (error) {
      return { state: 'Off', sentence: `Not possible: ${sentenceOf(error)}` }
    }
  }, [])
  const { value } = useLoaded(load)
  return (
    <li>
      <div>
        <b>Installation as an app</b>
        <small>{value?.sentence ?? 'Trying…'}</small>
      </div>
      <span className="tag">{value?.state ?? '…'}</span>
    </li>
  )
}
