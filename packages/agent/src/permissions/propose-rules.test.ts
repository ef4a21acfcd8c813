import type { PermissionRequestRecord, PermissionResultRecord } from '@tapetree/session/format'
import { expect, test } from 'vitest'
import { proposeRules, type PermissionHistory } from './propose-rules.ts'
import type { Rule } from './rules.ts'

type Answer = { optionId: string; outcome: 'allowed' | 'rejected' | 'cancelled' }
const once: Answer = { optionId: 'allow_once', outcome: 'allowed' }
const refused: Answer = { optionId: 'reject_once', outcome: 'rejected' }

const install: Rule = { effect: 'allow', type: 'command', match: 'npm install *' }
const push: Rule = { effect: 'allow', type: 'command', match: 'git push *' }

let seq = 0

/** Requests that offered a rule, each with its answer. */
function history(sessionId: string, ...asked: [rule: unknown, answer: Answer][]): PermissionHistory {
  const records = asked.flatMap(([rule, answer]): (PermissionRequestRecord | PermissionResultRecord)[] => {
    const requestId = `request-${++seq}`
    const base = { id: requestId, seq, timestamp: new Date(seq * 1000).toISOString() }
    const always = { optionId: 'allow_always', label: '', kind: 'allow_always' as const, grant: { rules: [rule] } }
    const options = [{ optionId: 'allow_once', label: '', kind: 'allow_once' as const }, always]
    return [
      { ...base, type: 'permission_request', permissionRequest: { requestId, tool: 'bash', title: '', options } },
      { ...base, type: 'permission_result', permissionResult: { requestId, ...answer } },
    ]
  })
  return { sessionId, records }
}

test('what was allowed once, several times, is proposed with its approvals, the most frequent first', () => {
  const proposals = proposeRules([
    history('a', [install, once], [push, once], [push, once]),
    history('b', [push, once], [install, once]),
  ])
  expect(proposals).toMatchObject([
    { rules: [push], approvals: 3, sessions: 2 },
    { rules: [install], approvals: 2, sessions: 2 },
  ])
  expect(proposals[1]?.lastApproved).toBe(new Date(seq * 1000).toISOString())
})

test('a single approval, a refusal, or a longer permission makes no proposal', () => {
  expect(proposeRules([history('a', [install, once])])).toEqual([])
  expect(proposeRules([history('a', [push, once], [push, once]), history('b', [push, refused])])).toEqual([])
  const always: Answer = { optionId: 'allow_always', outcome: 'allowed' }
  expect(proposeRules([history('a', [push, always], [push, always])])).toEqual([])
})

test('a rule that exists is not proposed again, whether its words are a text or a list', () => {
  const histories = [history('a', [install, once], [install, once])]
  expect(proposeRules(histories, { known: [{ ...install, match: ['npm', 'install', '*'] }] })).toEqual([])
  expect(proposeRules(histories, { known: [push] })).toHaveLength(1)
})

test('a log cannot propose anything but valid allow rules', () => {
  const deny = { ...push, effect: 'deny' }
  const unknown = { effect: 'allow', type: 'anything', match: '*' }
  for (const rule of [deny, unknown, 'allow all', null]) {
    expect(proposeRules([history('a', [rule, once], [rule, once])])).toEqual([])
  }
})
