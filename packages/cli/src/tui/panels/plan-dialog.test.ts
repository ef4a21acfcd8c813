import type { RequestAnswer, OpenQuestion } from '@tapetree/client'
import { expect, test } from 'vitest'
import { isPlan, PlanDialog } from './plan-dialog.ts'
import { plainTheme, press } from './testing/panel-driver.ts'

const plan = [
  '# Parser',
  '',
  '1. Read **all** of `date.ts`.',
  '2. Mend it.',
  '',
  '| step | file |',
  '| --- | --- |',
  '| 1 | a.ts |',
]

const request: OpenQuestion = {
  requestId: 'r',
  tool: 'exit_plan',
  title: plan.join('\n'),
  options: ['Accept', 'Change', 'Refuse'].map((label, index) => ({
    optionId: String(index + 1),
    label,
    kind: 'answer',
  })),
}

function open(title = request.title) {
  const answers: RequestAnswer[] = []
  let closed = 0
  let time = 0
  const dialog = new PlanDialog({
    theme: plainTheme,
    request: { ...request, title },
    now: () => (time += 10_000),
    onAnswer: (_, answer) => answers.push(answer),
    onClose: () => closed++,
  })
  dialog.setRows(20)
  dialog.render(60)
  return { dialog, answers, closed: () => closed }
}

test('the plan is drawn as Markdown, with three answers', () => {
  const screen = open().dialog.render(60).join('\n')
  expect(screen).toContain('Read all of date.ts.')
  expect(screen).not.toMatch(/\*\*|\| ---/)
  expect(screen).toMatch(/1\. Carry it out[^]*2\. Change it[^]*3\. Do not do this/)
})

test('one answer is given at a time: the space bar ticks nothing', () => {
  const { dialog, answers } = open()
  press(dialog, ' ', 'down', ' ', 'up', 'enter')
  expect(answers).toEqual([{ optionId: '1' }])
})

test('a change asks what should be different, and sends that', () => {
  const { dialog, answers } = open()
  press(dialog, '2')
  expect(dialog.render(60).join('\n')).toContain('What should be different?')
  press(dialog, 'enter', 'tests first', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'tests first' }])
})

test('a long plan scrolls, f shows it on the whole screen, and Esc goes back step by step', () => {
  const { dialog, answers, closed } = open(Array.from({ length: 60 }, (_, index) => `${index + 1}. step`).join('\n'))
  expect(dialog.render(60).join('\n')).toMatch(/▼ \d+ lines below[^]*1\. Carry it out/)
  press(dialog, 'f')
  expect(dialog.isFullScreen).toBe(true)
  press(dialog, 'escape', '2', 'escape', 'escape')
  expect([dialog.isFullScreen, closed(), answers]).toEqual([false, 1, []])
})

test('only a plan with the known answers is one', () => {
  expect([isPlan(request), isPlan({ ...request, tool: 'ask_user' }), isPlan({ ...request, options: [] })]).toEqual([
    true,
    false,
    false,
  ])
})
