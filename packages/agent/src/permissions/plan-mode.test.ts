import { expect, test } from 'vitest'
import { z } from 'zod'
import { callTool, testContext } from '../testing/tool-context.ts'
import { defineTool, type Answer, type Tool, type ToolOutput } from '../tools/tool.ts'
import { exitPlanTool, permissionModes, toolsFor } from './modes.ts'

function toolCalled(name: string, readOnly: boolean): Tool {
  const schema = z.strictObject({})
  return defineTool({ name, description: name, schema, readOnly, access: () => [], run: async () => ({ content: '' }) })
}

test('mode plan offers only read-only tools and exit_plan; the other modes offer the rest', () => {
  const tools = [toolCalled('read', true), toolCalled('write', false), exitPlanTool({ onAccepted: () => undefined })]
  const offered = permissionModes.map((mode) => [mode, toolsFor(mode, tools).map(({ name }) => name)])
  expect(Object.fromEntries(offered)).toEqual({
    ask: ['read', 'write'],
    'accept-edits': ['read', 'write'],
    sandboxed: ['read', 'write'],
    plan: ['read', 'exit_plan'],
    auto: ['read', 'write'],
  })
})

async function showPlan(answer: Answer): Promise<ToolOutput & { accepted: number; asked: string[] }> {
  let accepted = 0
  const context = testContext({ cwd: '/repo', answer })
  const tool = exitPlanTool({ onAccepted: () => void (accepted += 1) })
  const output = await callTool(tool, { plan: '1. Write it.' }, context)
  return { ...output, accepted, asked: context.questions.map(({ question }) => question) }
}

test('an accepted plan ends plan mode', async () => {
  const { content, accepted, asked, isError } = await showPlan({ text: 'Accept', isCancelled: false })
  expect({ accepted, asked, isError }).toEqual({ accepted: 1, asked: ['1. Write it.'], isError: undefined })
  expect(content).toContain('carry it out now')
})

test('a plan that the user wants changed is returned with their text, and plan mode continues', async () => {
  const { content, accepted } = await showPlan({ text: 'Test it first.', isCancelled: false })
  expect(accepted).toBe(0)
  expect(content).toContain('Test it first.')
  expect(await showPlan({ text: 'Change', isCancelled: false })).toMatchObject({ accepted: 0 })
})

test('a refused or withdrawn plan is not carried out', async () => {
  expect(await showPlan({ text: 'Refuse', isCancelled: false })).toMatchObject({ accepted: 0, isError: true })
  expect(await showPlan({ text: 'Accept', isCancelled: true })).toMatchObject({ accepted: 0, isError: true })
})

test('a plan may stay pending for any time, and changes nothing by itself', () => {
  const { readOnly, deadlineMs } = exitPlanTool({ onAccepted: () => undefined })
  expect({ readOnly, deadlineMs }).toEqual({ readOnly: true, deadlineMs: Infinity })
})
