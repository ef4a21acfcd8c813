import { expect, test } from 'vitest'
import { isQuestion } from './is-question.ts'

const option = (kind: 'answer' | 'allow_once') => ({ optionId: kind, label: kind, kind })

test('a request with choices is a question, and so is one from ask_user', () => {
  expect(isQuestion({ tool: 'plan', options: [option('answer')] })).toBe(true)
  expect(isQuestion({ tool: 'ask_user', options: [] })).toBe(true)
})

test('a permission request is not a question, even without options', () => {
  expect(isQuestion({ tool: 'bash', options: [option('allow_once')] })).toBe(false)
  expect(isQuestion({ tool: 'bash', options: [] })).toBe(false)
})
