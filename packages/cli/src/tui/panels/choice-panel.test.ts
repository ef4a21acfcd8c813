import { expect, test } from 'vitest'
import type { OfferedModel } from '../../session-source.ts'
import { ConfirmDialog, ResumeDialog } from './resume-dialog.ts'
import { ModePicker, ModelPicker, ThemePicker, ThinkingPicker } from './pickers.ts'
import { golden, plainTheme, press } from './testing/panel-driver.ts'

const theme = plainTheme

test('models match by some of their letters; one without a key shows how to add it and cannot be chosen', async () => {
  const calls: string[] = []
  const models = [
    model('cloud/big-thinker', { isUsable: false }),
    model('local/small'),
    model('local/large', { contextTokens: 2_000_000 }),
  ]
  const picker = new ModelPicker({
    theme,
    models,
    current: 'local/large',
    onChoose: ({ reference }) => calls.push(reference),
    onClose: () => calls.push('close'),
  })
  press(picker, 'end', 'enter')
  await expect(golden(picker)).toMatchFileSnapshot('golden/model-picker.txt')
  press(picker, 'lsm', 'enter', 'escape')
  expect(calls).toEqual(['local/small', 'close'])
})

test('models that load later do not move the selection', () => {
  const calls: string[] = []
  const options = {
    theme,
    models: [model('b/two')],
    onChoose: ({ name }: OfferedModel) => calls.push(name),
    onClose: () => {},
  }
  const picker = new ModelPicker(options)
  picker.update([model('a/one'), ...options.models])
  press(picker, 'enter')
  expect(calls).toEqual(['two'])
})

test('a thinking level and a mode are chosen by digit', async () => {
  const calls: string[] = []
  const common = { theme, onClose: () => calls.push('close') }
  const onChoose = (choice: string): number => calls.push(choice)
  const thinking = new ThinkingPicker({ ...common, levels: ['off', 'low', 'high'], current: 'low', onChoose })
  const mode = new ModePicker({ ...common, current: 'ask', onChoose })
  await expect(golden(thinking) + golden(mode)).toMatchFileSnapshot('golden/thinking-and-mode.txt')
  press(thinking, '3')
  press(mode, '4')
  expect(calls).toEqual(['high', 'plan'])
})

test('a theme is previewed while it is selected', () => {
  const calls: string[] = []
  const picker = new ThemePicker({
    theme,
    current: 'dark',
    onPreview: (name) => calls.push(`look at ${name}`),
    onChoose: (name) => calls.push(name),
    onClose: () => calls.push('close'),
  })
  press(picker, 'down', 'down', 'down', 'enter', 'escape')
  expect(calls).toEqual(['look at light', 'look at high-contrast', 'high-contrast', 'close'])
})

test('open work of an interrupted run is listed, with every way to continue', async () => {
  const calls: string[] = []
  const dialog = new ResumeDialog({
    theme,
    matters: ['started: bash npm \u001b[2Jtest', 'waiting for your answer: Write /code/a.ts'],
    onResume: () => calls.push('resume'),
    onLeave: () => calls.push('leave'),
    onNewMessage: () => calls.push('message'),
  })
  await expect(golden(dialog)).toMatchFileSnapshot('golden/resume-dialog.txt')
  press(dialog, '1', '2', '3', 'escape')
  expect(calls).toEqual(['resume', 'message', 'leave', 'leave'])
})

test('Enter alone does not confirm a dangerous action', async () => {
  const calls: boolean[] = []
  const onAnswer = (isYes: boolean): number => calls.push(isYes)
  const dangerous = new ConfirmDialog({
    theme,
    title: 'Quit',
    text: 'A run goes on. It can be resumed.',
    isDangerous: true,
    onAnswer,
  })
  const plain = new ConfirmDialog({ theme, title: 'Quit', text: 'Really?', onAnswer })
  await expect(golden(dangerous)).toMatchFileSnapshot('golden/confirm-dialog.txt')
  press(dangerous, 'enter', 'y', 'escape')
  press(plain, 'enter')
  expect(calls).toEqual([false, true, false, true])
})

test('choices stay visible if the text above them is longer than the screen', () => {
  const matters = Array.from({ length: 40 }, (_, index) => `matter ${index}`)
  const dialog = new ResumeDialog({ theme, matters, onResume: () => {}, onLeave: () => {}, onNewMessage: () => {} })
  dialog.setRows(12)
  const lines = dialog.render(60)
  expect(lines).toHaveLength(12)
  expect(lines.join('\n')).toMatch(/matter 0[^]*▼ \d+ lines below[^]*1\. Resume[^]*3\. Leave it/)
  for (let page = 0; page < 20; page++) dialog.handleInput('\u001b[6~')
  expect(dialog.render(60).join('\n')).toMatch(/matter 39[^]*▲ \d+ lines above[^]*1\. Resume[^]*3\. Leave it/)
})

function model(reference: string, changes: Partial<OfferedModel> = {}): OfferedModel {
  const [provider = '', name = ''] = reference.split('/')
  return {
    reference,
    provider,
    modelId: name,
    name,
    contextTokens: 200_000,
    thinkingLevels: [],
    isUsable: true,
    ...changes,
  }
}
