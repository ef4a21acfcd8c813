import type { RequestAnswer, OpenQuestion } from '@tapetree/client'
import { expect, test } from 'vitest'
import { QuestionDialog } from './question-dialog.ts'
import { golden, plainTheme, press } from './testing/panel-driver.ts'

test('shows the question and its answers with their meaning', async () => {
  await expect(golden(open().dialog)).toMatchFileSnapshot('golden/question-dialog.txt')
})

test('a digit chooses one answer', () => {
  const { dialog, answers } = open()
  press(dialog, '2')
  expect(answers).toEqual([{ optionId: '2' }])
})

test('the space bar selects several, sent together', () => {
  const { dialog, answers } = open()
  press(dialog, ' ', 'down', ' ', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'Postgres\nSQLite' }])
})

test('free text may have several lines', () => {
  const { dialog, answers } = open()
  press(dialog, '3', 'none', 'shift+enter', 'of them', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'none\nof them' }])
})

test('a question can be postponed or declined', () => {
  const { dialog, answers, closed } = open()
  press(dialog, 'escape', '4')
  expect([answers, closed()]).toEqual([[{ outcome: 'cancelled' }], 1])
})

test('a question without options takes free text at once', () => {
  const { dialog, answers } = open({ options: [] })
  press(dialog, 'blue', 'enter')
  expect(answers).toEqual([{ outcome: 'allowed', text: 'blue' }])
})

function open(changes: Partial<OpenQuestion> = {}) {
  const answers: RequestAnswer[] = []
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
