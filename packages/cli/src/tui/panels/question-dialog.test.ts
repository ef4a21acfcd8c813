import type { RequestAnswer as Answer, OpenQuestion } from '@tapetree/client'
import { expect, test } from 'vitest'
import { QuestionDialog } from './question-dialog.ts'
import { golden, plainTheme, press } from './testing/panel-driver.ts'

test('the question and its answers are shown with what they mean', async () => {
  await expect(golden(open().dialog)).toMatchFileSnapshot('golden/question-dialog.txt')
})

test('one answer is taken by its digit', () => {
  const { dialog, answers } = open()
  press(dialog, '2')
  expect(answers).toEqual([{ optionId: '2' }])
})

test('several are ticked with the space bar and sent together', () => {
  const { dialog, answers } = open()
  press(dialog, ' ', 'down', ' ', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'Postgres\nSQLite' }])
})

test('own words may have several lines', () => {
  const { dialog, answers } = open()
  press(dialog, '3', 'none', 'shift+enter', 'of them', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'none\nof them' }])
})

test('it can be left unanswered, for now or for good', () => {
  const { dialog, answers, closed } = open()
  press(dialog, 'escape', '4')
  expect([answers, closed()]).toEqual([[{ outcome: 'cancelled' }], 1])
})

test('a question without answers to choose from takes words at once', () => {
  const { dialog, answers } = open({ options: [] })
  press(dialog, 'blue', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'blue' }])
})

function open(changes: Partial<OpenQuestion> = {}) {
  const answers: Answer[] = []
  let closed = 0
  let now = 0
  const request: OpenQuestion = {
    requestId: 'q',
    tool: 'ask_user',
    title: 'Which database should the project use? Tests would run against it.',
    input: { options: [{ label: 'Postgres', description: 'a server of its own' }, { label: 'SQLite' }] },
    options: [
      { optionId: '1', label: 'Postgres', kind: 'answer' },
      { optionId: '2', label: 'SQLite', kind: 'answer' },
    ],
    ...changes,
  }
  const dialog = new QuestionDialog({
    theme: plainTheme,
    request,
    now: () => now,
    onAnswer: (_, answer) => answers.push(answer),
    onClose: () => closed++,
  })
  dialog.render(80)
  now = 1000
  return { dialog, answers, closed: () => closed }
}
