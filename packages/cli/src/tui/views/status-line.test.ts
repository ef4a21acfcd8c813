import { expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import { statusLine, type StatusOptions } from './status-line.ts'
import { call, Talk, talkTime } from './testing/talk.ts'

function status(talk: Talk, options: Partial<StatusOptions> = {}): string | undefined {
  const theme = themeFor({ theme: 'dark', color: false })
  return statusLine({
    transcript: talk.transcript,
    run: undefined,
    width: 80,
    theme,
    now: talkTime + 12_000,
    ...options,
  })
}

function running(): Talk {
  return new Talk().user('go').record('run_start', { runStart: { runId: 'r', leafId: null } })
}

test('the status shows the activity of the run, from start to end', () => {
  const talk = running()
  const seen = [status(new Talk()), status(talk)]
  seen.push(status(talk.live('e3', 'reasoning', 'hm')))
  seen.push(status(talk.live('e3', 'text', 'ho', 1)))
  seen.push(status(talk.live('e3', 'tool_input', '{', 2)))
  talk.assistant(call('a', 'bash', { command: 'make\nall' }))
  seen.push(status(talk.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'bash' } })))
  const permissionRequest = { requestId: 'q', tool: 'bash', title: 'Run rm?', options: [] }
  seen.push(status(talk.record('permission_request', { permissionRequest })))
  expect(seen).toEqual([
    undefined,
    ' ● Waiting for the model · 12 s',
    ' ● Thinking · 12 s',
    ' ● Writing · 12 s',
    ' ● Preparing a tool call · 12 s',
    ' ● Running bash make all · 12 s',
    ' ● Waiting for you: Run rm? · 12 s',
  ])
})

test('the status shows what the run waits for, and for how long', () => {
  const talk = running()
  const error = { kind: 'overloaded', message: 'Too busy.' }
  const retry = { type: 'auto_retry_start', runId: 'r', attempt: 2, delayMs: 8000, error } as const
  const run = { runId: 'r', isBusy: true, waitingFor: retry }
  expect(status(talk, { run, waitingSince: talkTime + 9000 })).toBe(' ● Retrying in 5 s (attempt 2): Too busy. · 12 s')
  expect(status(talk, { run, waitingSince: talkTime + 9000, width: 30 })).toBe(' ● Retrying in 5 s (at… · 12 s')
  const compacting = { type: 'auto_compaction_start', runId: 'r', reason: 'threshold' } as const
  expect(status(talk, { run: { ...run, waitingFor: compacting } })).toBe(
    ' ● Summarizing the conversation to make room · 12 s',
  )
  const storing = { type: 'storage', runId: 'r', since: '2026-01-01T00:00:00.000Z' } as const
  expect(status(talk, { run: { ...run, waitingFor: storing } })).toBe(' ● Waiting for the storage · 12 s')
  const left = { runId: 'r', isBusy: false, waitingFor: { type: 'resume', runId: 'r' } } as const
  expect(status(new Talk(), { run: left })).toBe(' ● An interrupted run is waiting for you')
})
