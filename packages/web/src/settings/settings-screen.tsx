import { lazy, Suspense, type ReactNode } from 'react'
import { settingsLink, settingsSections, type SettingsSection } from '../route.ts'
import { Screen } from '../screen.tsx'
import type { Caller } from '../server.ts'
import { GeneralSettings } from './general.tsx'
import './settings.css'

const Devices = lazy(async () => ({ default: (await import('./devices.tsx')).Devices }))
const Usage = lazy(async () => ({ default: (await import('./usage.tsx')).Usage }))
const Notifications = lazy(async () => ({
  default: (await import('../notifications/notification-settings.tsx')).NotificationSettings,
}))

const names: Record<SettingsSection, string> = {
  general: 'General',
  devices: 'Devices',
  notifications: 'Notifications',
  usage: 'Usage',
}

export function SettingsScreen({ section, caller }: { section: SettingsSection; caller: Caller }): ReactNode {
  return (
    <Screen title="Settings" back={{ href: '#/', name: 'All sessions' }}>
      <nav className="sections" aria-label="Sections of the settings">
        {settingsSections.map((each) => (
          <a key={each} href={settingsLink(each)} aria-current={each === section ? 'page' : undefined}>
            {names[each]}
          </a>
        ))}
      </nav>
      <div className="settings">
        <Suspense fallback={<p className="faint">Loading…</p>}>
          {section === 'general' && <GeneralSettings caller={caller} />}
          {section === 'devices' && <Devices caller={caller} />}
          {section === 'notifications' && <Notifications />}
          {section === 'usage' && <Usage />}
        </Suspense>
      </div>
    </Screen>
  )
}
