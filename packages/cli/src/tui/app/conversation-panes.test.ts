import { expect, test } from 'vitest'
import { themeFor, type Theme } from '../theme.ts'
import { ScriptedHandle } from '../testing/scripted-handle.ts'
import { ScrollbackPane } from './conversation-panes.ts'

test('a conversation of any length is drawn once, and after that only its changes', () => {
  let dressed = 0
  const theme = new Proxy(themeFor({ theme: 'dark', color: true }), {
    get: (from, name) => {
      dressed++
      return from[name as keyof Theme]
    },
  })
  const pane = new ScrollbackPane({ theme, now: () => 0, onOlder: () => undefined, onChange: () => undefined })
  const handle = new ScriptedHandle()
  handle.user('How long is it?')
  pane.update('s', handle.transcript)
  for (let turn = 0; turn < 3; turn++) handle.assistant('`word`\n\n'.repeat(4000))
  pane.update('s', handle.transcript)
  const lines = pane.render(80)
  expect(lines.length).toBeGreaterThan(20_000)
  dressed = 0
  expect(pane.render(80)).toEqual(lines)
  expect(dressed).toBeLessThan(10)
})
