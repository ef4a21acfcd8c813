import { expect, test } from 'vitest'
import { isQuestion } from './is-question.ts'

const option = (kind: 'answer' | 'allow_once') => ({ optionId: kind, label: kind, kind })

test('what has answers to choose from is a question, and so is what ask_user asks', () => {
  expect(isQuestion({ tool: 'plan', options: [option('answer')] })).toBe(true)
  expect(isQuestion({ tool: 'ask_user', options: [] })).toBe(true)
})

test('a permission is none, not even one without options', () => {
  expect(isQuestion({ tool: 'bash', options: [option('allow_once')] })).toBe(false)
  expect(isQuestion({ tool: 'bash', options: [] })).toBe(false)
})
