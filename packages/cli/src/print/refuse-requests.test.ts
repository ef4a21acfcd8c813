import type { SessionHandle } from '@tapetree/client'
import { emptyTranscript, type PermissionRequest, type Transcript } from '@tapetree/session'
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

test('a permission is refused, and counts for the run that asked, also where it has no options', () => {
  expect(look([request('bash')])).toEqual({ refusals: ['Use bash?'], answered: ['bash'], unanswered: [] })
})

test('a question that nobody answers is no refusal', () => {
  expect(look([request('ask_user')])).toEqual({ refusals: [], answered: ['ask_user'], unanswered: ['ask_user'] })
})

test('what the run of another asks is left to that one', () => {
  expect(look([request('bash')], { isOurs: false })).toEqual({ refusals: [], answered: [], unanswered: [] })
})
