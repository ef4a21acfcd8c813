import type { ModelList } from '@tapetree/client'
import type { RestResults } from '@tapetree/client/types'
import { useState, type ReactNode } from 'react'
import { LoadState } from '../screen.tsx'
import { mayDo, rest, sentenceOf, type Caller } from '../server.ts'
import { chooseTheme, readTheme, themes, type Theme } from '../theme.ts'
import { useLoaded } from '../use-loaded.ts'

type Setting = RestResults['settings']['settings'][number]
type Change = Parameters<typeof rest.changeSettings>[0]

export function GeneralSettings({ caller }: { caller: Caller }): ReactNode {
  return (
    <>
      <ThemeChoice />
      {mayDo(caller.role, 'drive') ? (
        <ServerSettings />
      ) : (
        <p className="faint">The settings of the server need the role drive. This device has the role {caller.role}.</p>
      )}
    </>
  )
}

const themeNames: Record<Theme, string> = { system: 'As the system', light: 'Light', dark: 'Dark' }

function ThemeChoice(): ReactNode {
  const [theme, setTheme] = useState(readTheme)
  return (
    <fieldset className="card">
      <legend>Theme of this browser</legend>
      <div className="segments">
        {themes.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="theme"
              checked={each === theme}
              onChange={() => {
                chooseTheme(each)
                setTheme(each)
              }}
            />
            {themeNames[each]}
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** What the server lets a device write, in the order of the page. */
const writable = [
  { key: 'model', member: 'model', name: 'Model of new sessions' },
  { key: 'thinkingLevel', member: 'thinkingLevel', name: 'Thinking level of new sessions' },
  { key: 'terminal.theme', member: 'theme', name: 'Theme of the terminal' },
] as const

const thinkingLevels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const terminalThemes = ['dark', 'light', 'high-contrast']

function ServerSettings(): ReactNode {
  const { value, problem, reload } = useLoaded(loadSettings)
  const [changed, setChanged] = useState<RestResults['settings']>()
  const [notice, setNotice] = useState<{ text: string; isProblem: boolean }>()
  if (!value) return <LoadState problem={problem} onRetry={reload} />
  const { settings, problems } = changed ?? value.settings
  const choices: Record<(typeof writable)[number]['key'], string[]> = {
    model: value.models.filter(({ key }) => key !== 'missing').map(({ provider, modelId }) => `${provider}/${modelId}`),
    thinkingLevel: thinkingLevels,
    'terminal.theme': terminalThemes,
  }
  const write = async (change: Change): Promise<void> => {
    try {
      setChanged(await rest.changeSettings(change))
      setNotice({ text: 'Saved. New sessions use it.', isProblem: false })
    } catch (error) {
      setNotice({ text: sentenceOf(error), isProblem: true })
    }
  }
  const mode = settings.find(({ key }) => key === 'permissions.mode')
  const modeName = typeof mode?.value === 'string' ? mode.value : 'ask'
  return (
    <>
      <section className="card" aria-labelledby="server-settings">
        <h2 id="server-settings">Settings of the server</h2>
        {writable.map(({ key, member, name }) => {
          const setting = settings.find((each) => each.key === key)
          const current = typeof setting?.value === 'string' ? setting.value : ''
          const options = [...new Set([...choices[key], ...(current === '' ? [] : [current])])]
          return (
            <div key={key} className="setting">
              <label className="field">
                {name}
                <select
                  value={current}
                  onChange={({ target }) => void write({ [member]: target.value === '' ? null : target.value })}
                >
                  <option value="">{key === 'model' ? 'None' : 'Default'}</option>
                  {options.map((option) => (
                    <option key={option}>{option}</option>
                  ))}
                </select>
              </label>
              {setting && isOverridden(setting) && (
                <small>
                  Another layer decides it now: {originText(setting)}. A change here has no effect until then.
                </small>
              )}
            </div>
          )
        })}
        <p role="status" className={notice ? `notice ${notice.isProblem ? 'failed' : 'good'}` : undefined}>
          {notice?.text}
        </p>
      </section>
      <section className="card" aria-labelledby="permission-mode">
        <h2 id="permission-mode">Permission mode</h2>
        <p>
          <code>{modeName}</code> {modeTexts[modeName]}
        </p>
        <small>
          Read-only here, so that no device can widen what runs without a question. From {originText(mode)}. Change{' '}
          <code>permissions.mode</code> in the settings file of the server, or the mode of one session in that session.
        </small>
      </section>
      {problems.map((each) => (
        <p key={each} className="notice">
          {each}
        </p>
      ))}
      <details className="card">
        <summary>All settings, read-only</summary>
        <div className="table-scroll" tabIndex={0} role="region" aria-label="All settings">
          <table>
            <thead>
              <tr>
                <th>Setting</th>
                <th>Value</th>
                <th>From</th>
              </tr>
            </thead>
            <tbody>
              {settings.map((setting) => (
                <tr key={setting.key}>
                  <td>
                    <code>{setting.key}</code>
                  </td>
                  <td>
                    <code>{JSON.stringify(setting.value)}</code>
                  </td>
                  <td>{originText(setting)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <p className="faint">
          Change them with <code>tapetree config</code> on the server, or in the file named above.
        </p>
      </details>
    </>
  )
}

const modeTexts: Readonly<Record<string, string>> = {
  ask: 'asks before anything that is not known to be harmless.',
  'accept-edits': 'also writes files in the working folder without asking.',
  sandboxed:
    'also runs commands in a sandbox without asking; leaving the sandbox asks. Without a working sandbox it asks.',
  plan: 'reads and plans, and changes nothing.',
  auto: 'allows almost everything without asking.',
}

interface LoadedSettings {
  settings: RestResults['settings']
  models: ModelList['models']
}

async function loadSettings(signal: AbortSignal): Promise<LoadedSettings> {
  const [settings, { models }] = await Promise.all([rest.settings(undefined, signal), rest.models(signal)])
  return { settings, models }
}

/** Layers above the one that a device writes. */
function isOverridden({ origin }: Setting): boolean {
  return !['built-in', 'user'].includes(origin.layer)
}

function originText(setting: Setting | undefined): string {
  if (!setting || setting.origin.layer === 'built-in') return 'the defaults'
  const { layer, file, line, variable } = setting.origin
  if (variable !== undefined) return `the variable ${variable}`
  if (file !== undefined) return line === undefined ? file : `${file}, line ${line}`
  return `the ${layer} settings`
}
