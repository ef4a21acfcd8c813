import { expect, test } from 'vitest'
import { makeBase } from './base.ts'
import type { Setup } from './setup.ts'
import { play } from './walks.ts'

const parallel: Setup = { policy: 'skip-remaining', calls: ['look', 'look'], begins: 'with-calls' }
const speaking: Setup = { ...parallel, begins: 'before-the-answer' }

/** What the proof has found once. */
test.each<[string, Setup, string[]]>([
  [
    'a steer that is accepted while the end of its run is on its way is heard',
    { ...speaking, isDiskSlow: true },
    ['end', 'steer', 'disk'],
  ],
  [
    'an abort between an answer and the next message holds that',
    { ...speaking, isDiskSlow: true },
    ['follow-up~10~end', 'abort'],
  ],
  ['a run that was stopped stays stopped after a crash', { ...speaking, isDiskSlow: true }, ['abort', 'disk', 'crash']],
  [
    'a run that is stopped stops the summary that an earlier run has begun',
    { ...parallel, hasBackground: true },
    ['filling', 'tool:c1', 'tool:c2', 'end', 'prompt', 'call', 'overflow~1~abort'],
  ],
  [
    'a steer that comes while the summary of the background is appended is in the next request',
    {
      policy: 'interrupt',
      calls: ['write', 'write'],
      begins: 'before-the-answer',
      isDiskSlow: true,
      hasDeadline: true,
      keepsCheckpoint: false,
      hasBackground: true,
      tail: 'end',
    },
    [
      ...['error~24~filling', 'disk', 'steer', 'steer', 'time', 'delta~18~call', 'disk', 'end', 'disk', 'steer'],
      ...['disk', 'disk', 'disk', 'disk', 'disk', 'steer'],
    ],
  ],
  ['a call of an answer that was stopped is not run after a crash', speaking, ['ask', 'crash-after:1', 'abort']],
  [
    'a run from an answer that was stopped goes on after a crash',
    { ...parallel, calls: ['write', 'write'] },
    ['tool:c1', 'tool:c2', 'abort', 'retry~26~crash-before:1'],
  ],
  [
    'a question about a call that a steer skips does not outlive a crash',
    { ...parallel, isAsking: true },
    ['crash-after:1', 'steer'],
  ],
  [
    'a message may be taken back while it is delivered',
    speaking,
    ['follow-up', 'abort', 'release', 'deliver~12~remove'],
  ],
  [
    'a steer may be taken back in the moment before it is delivered',
    parallel,
    ['steer', 'tool:c1', 'tool:c2~27~remove'],
  ],
  ['a message may be taken back between two runs', speaking, ['follow-up', 'end~25~remove']],
  [
    'a message may be taken back while its run ends on a slow disk',
    { ...parallel, isDiskSlow: true },
    ['follow-up~20~tool:c1', 'disk~8~tool:c2', 'disk', 'disk', 'end', 'disk', 'disk~23~remove'],
  ],
  [
    'a steer is heard after the compaction that it came in',
    parallel,
    ['compaction', 'tool:c1', 'tool:c2', 'steer', 'end'],
  ],
  [
    'the usage of a summary that ends with the run is kept',
    parallel,
    ['tool:c1', 'tool:c2', 'overflow', 'end~2~abort'],
  ],
  [
    'a message that is held while its run starts is not delivered',
    { ...speaking, isDiskSlow: true },
    ['end', 'disk', 'disk', 'steer', 'disk', 'deliver~14~hold'],
  ],
  [
    'a steer that is held while its run ends is not delivered',
    { ...speaking, policy: 'interrupt', isDiskSlow: true },
    ['end', 'steer', 'disk', 'disk', 'disk~27~hold'],
  ],
  [
    'a run that is stopped before its start is durable stays stopped after a crash',
    { ...speaking, calls: ['look', 'write'], isAsking: true, isDiskSlow: true },
    ['end', 'follow-up', 'disk~23~hold', 'disk', 'disk', 'disk', 'disk~15~abort', 'disk~12~crash-before:1'],
  ],
  [
    'a run that waits for a summary of an earlier run can be stopped',
    { ...parallel, hasBackground: true },
    ['filling', 'tool:c1', 'tool:c2', 'end', 'prompt', 'call', 'compaction', 'tool:c3', 'tool:c4', 'abort'],
  ],
])('%s', async (_, setup, actions) => {
  const { problem, actions: taken } = await play({ setup, actions }, await makeBase())
  expect(problem).toBeUndefined()
  expect(taken).toEqual(actions)
})

test('a case that is played twice goes the same way', async () => {
  const base = await makeBase()
  const actions = ['steer', 'tool:c1~7~follow-up', 'tool:c2', 'crash-after:2', 'call', 'overflow', 'delta', 'abort']
  const first = await play({ setup: parallel, actions }, base)
  const second = await play({ setup: parallel, actions }, base)
  expect(second.scene.trace).toEqual(first.scene.trace)
  expect(second.scene.lines.map(typeOf)).toEqual(first.scene.lines.map(typeOf))
})

function typeOf(line: string): unknown {
  return (JSON.parse(line) as { type: unknown }).type
}
