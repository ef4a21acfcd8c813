import { expect, test } from 'vitest'
import { HelpPanel } from './help-panel.ts'
import { golden, plainTheme, press } from './testing/panel-driver.ts'

test('keys and commands are side by side, and the rest can be scrolled to', async () => {
  let closed = 0
  const sections = [
    {
      title: 'Keys',
      rows: [
        { name: 'Ctrl-C', says: 'stop the turn and keep everything; twice: quit' },
        { name: 'Alt-Enter', says: 'steer' },
      ],
    },
    {
      title: 'Commands',
      rows: [
        { name: '/model [provider/model]', says: 'choose the model' },
        { name: '/quit', says: 'leave' },
      ],
    },
  ]
  const panel = new HelpPanel({ theme: plainTheme, sections, onClose: () => closed++ })
  await expect(golden(panel)).toMatchFileSnapshot('golden/help-panel.txt')
  panel.setRows(6)
  press(panel, 'end')
  expect(panel.render(80)).toHaveLength(6)
  expect(panel.render(80).join('\n')).toMatch(/\/quit[^]*▲ \d+ lines above/)
  press(panel, 'q')
  expect(closed).toBe(1)
})
