import type { SessionHandle } from '@tapetree/client'
import { emptyTranscript, type PermissionRequest, type Transcript } from '@tapetree/session/view'
import { expect, test } from 'vitest'
import { RequestRefuser } from './refuse-requests.ts'

const at = { seq: 2, timestamp: '' }
const request = (tool: string): PermissionRequest => ({
  requestId: tool,
  tool,
  title: `Use ${tool}?`,
  options: [],
  ...at,
})

function look(permissions: PermissionRequest[], { isOurs = true } = {}) {
  const answered: string[] = []
  const unanswered: string[] = []
  const transcript: Transcript = { ...emptyTranscript(), run: { runId: 'r1', leafId: null, ...at }, permissions }
  const handle = {
    transcript,
    subscribe: () => () => undefined,
    answer: async (id: string) => void answered.push(id),
  } as unknown as SessionHandle
  const refuser = new RequestRefuser({
    handle,
    isOurs: () => isOurs,
    isSomebodyThere: () => false,
    onWaiting: () => undefined,
    onUnanswered: ({ requestId }) => unanswered.push(requestId),
  })
  refuser.look()
  return { refusals: refuser.to('r1').map(({ title }) => title), answered, unanswered }
}

test('a permission is refused and counted for its run, even without options', () => {
  expect(look([request('bash')])).toEqual({ refusals: ['Use bash?'], answered: ['bash'], unanswered: [] })
})

test('an unanswered question is not a refusal', () => {
  expect(look([request('ask_user')])).toEqual({ refusals: [], answered: ['ask_user'], unanswered: ['ask_user'] })
})

test('requests of another run are left to that run', () => {
  expect(look([request('bash')], { isOurs: false })).toEqual({ refusals: [], answered: [], unanswered: [] })
})
