import { expect, test } from 'vitest'
import { defaultRunSettings } from '../run/run-settings.ts'
import { builtIn } from './built-in.ts'
import { describeSettings } from './describe.ts'

test('every setting is described', () => {
  const rows = describeSettings()
  expect(rows.filter(({ description }) => description.length < 10)).toEqual([])
  expect(rows.length).toBeGreaterThan(45)
  expect(rows.find(({ key }) => key === 'permissions.mode')).toEqual({
    key: 'permissions.mode',
    type: '"ask" | "accept-edits" | "sandboxed" | "plan" | "auto"',
    default: '"sandboxed"',
    description:
      'How much is allowed without a permission request. If no sandbox works, `sandboxed` becomes `ask`. A project can narrow it, never widen it.',
    variable: 'TAPETREE_PERMISSIONS_MODE',
  })
  expect(rows.find(({ key }) => key === 'mcpServers.<name>')?.variable).toBeUndefined()
})

test('no two settings share a variable', () => {
  const variables = describeSettings().flatMap(({ variable }) => variable ?? [])
  expect(new Set(variables).size).toBe(variables.length)
})

test('the defaults are those of a run without options', () => {
  const { limits, compaction, retry, steerPolicy, reasoning, conversations } = builtIn
  expect({
    runLimits: limits?.run,
    sessionLimits: limits?.session,
    compaction,
    retry,
    steerPolicy,
    reasoning,
    followUpDelayMs: (conversations?.queue?.delay_seconds ?? NaN) * 1000,
    sendsFollowUps: conversations?.queue?.enabled,
  }).toEqual(defaultRunSettings)
})
