import { describe, expect, test } from 'vitest'
import { stateKeys, stateValueSchemas, type WireStateValues } from './protocol/state-values.ts'
import { readStateValue, isQuestion, type StateValues } from './state-values.ts'

const waiting = { id: 'q-1', delivery: 'follow-up', message: 'And then?', held: false } as const
const input = { file_path: 'a.ts', nested_names: { stay_as_they: 'are' } }

const wire: WireStateValues = {
  run: { run_id: 'r', is_busy: true, waiting_for: { type: 'resume', run_id: 'r' } },
  queue: {
    queue_length: 2,
    total: 3,
    hold: { reason: 'stopped' },
    messages: [{ ...waiting, truncated: true, image_ids: ['i'], queued_at: 'now', client_id: 'tab' }],
  },
  config: { model: { provider: 'p', model_id: 'm' }, thinking_level: 'low', mode: 'ask' },
  usage: { turns: 1, tool_calls: 2, run_ms: 3, tokens: 4, cost: 5 },
  presence: [{ id: 'tab', name: 'Laptop', visibility: 'hidden', typing: true }],
  plan: [{ text: 'Look around', status: 'in_progress' }],
  commands: [{ name: 'review', description: 'Looks at a change.' }],
  read_only: { reason: 'Process 7 on box is writing this session.', owner: { host: 'box', process: '7' } },
  language_servers: [
    { name: 'typescript', status: 'running', errors: 2, warnings: 1 },
    { name: 'pyright', status: 'failed', problem: 'Gone.', retry_at: null, errors: 0, warnings: 0 },
  ],
  permissions: [
    { request_id: 'p-1', call_id: 'c', title: 'May I?', input, options: [{ option_id: 'yes', label: 'Yes' }] },
  ],
}

const read: { [Key in keyof StateValues]: unknown } = {
  run: { runId: 'r', isBusy: true, waitingFor: { type: 'resume', runId: 'r' } },
  queue: {
    queueLength: 2,
    total: 3,
    hold: { reason: 'stopped' },
    messages: [{ ...waiting, truncated: true, imageIds: ['i'], queuedAt: 'now', clientId: 'tab' }],
  },
  config: { model: { provider: 'p', modelId: 'm' }, thinkingLevel: 'low', mode: 'ask' },
  usage: { turns: 1, toolCalls: 2, runMs: 3, tokens: 4, cost: 5 },
  presence: wire.presence,
  plan: wire.plan,
  commands: wire.commands,
  read_only: wire.read_only,
  language_servers: [
    { name: 'typescript', status: 'running', errors: 2, warnings: 1 },
    { name: 'pyright', status: 'failed', problem: 'Gone.', retryAt: null, errors: 0, warnings: 0 },
  ],
  permissions: [
    { requestId: 'p-1', callId: 'c', title: 'May I?', input, options: [{ optionId: 'yes', label: 'Yes' }] },
  ],
}

describe('the value of a state key', () => {
  test.each(stateKeys)('is read from the wire: %s', (key) => {
    expect(stateValueSchemas[key].parse(wire[key])).toEqual(wire[key])
    expect(readStateValue(key, wire[key])).toEqual(read[key])
  })

  test.each([
    [
      {
        type: 'auto_retry_start',
        run_id: 'r',
        attempt: 2,
        delay_ms: 10,
        error: { kind: 'overloaded', message: 'No.' },
      },
      { type: 'auto_retry_start', runId: 'r', attempt: 2, delayMs: 10, error: { kind: 'overloaded', message: 'No.' } },
    ],
    [
      { type: 'auto_compaction_start', run_id: 'r', reason: 'threshold' },
      { type: 'auto_compaction_start', runId: 'r', reason: 'threshold' },
    ],
    [
      { type: 'storage', run_id: null, since: '2026-01-01T00:00:00.000Z' },
      { type: 'storage', runId: null, since: '2026-01-01T00:00:00.000Z' },
    ],
    [{ type: 'a_good_idea', run_id: 'r' }, null],
  ])('has what a run waits for, if the kind is known: %j', (waiting_for, waitingFor) => {
    expect(readStateValue('run', { run_id: 'r', is_busy: true, waiting_for })).toMatchObject({ waitingFor })
  })

  test('is undefined if the server has no model', () => {
    expect(readStateValue('config', {})).toEqual({ model: null, thinkingLevel: null, mode: null })
  })
})

const option = (kind: 'answer' | 'allow_once') => ({ optionId: kind, label: kind, kind })

test('a request with choices is a question, and so is one from ask_user', () => {
  expect(isQuestion({ tool: 'plan', options: [option('answer')] })).toBe(true)
  expect(isQuestion({ tool: 'ask_user', options: [] })).toBe(true)
})

test('a permission request is not a question, even without options', () => {
  expect(isQuestion({ tool: 'bash', options: [option('allow_once')] })).toBe(false)
  expect(isQuestion({ tool: 'bash', options: [] })).toBe(false)
})
