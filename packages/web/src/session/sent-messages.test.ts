import { ProblemError, type ConnectionStatus, type PromptResult } from '@tapetree/client'
import { emptyTranscript, reduceTranscript, type Transcript } from '@tapetree/session/view'
import { memoryStore, text, type Session } from '@tapetree/session'
import { expect, test } from 'vitest'
import { orRefused, SentMessages } from './sent-messages.ts'

const queued: PromptResult = { outcome: 'queued', runId: 'r', messageId: 'm1' }

const added = {
  action: 'add' as const,
  id: 'm1',
  delivery: 'follow-up' as const,
  message: 'later',
  imageIds: [],
  queuedAt: '2026-11-16T00:00:00Z',
}

/** A conversation and the messages of a page that follows it. */
async function conversation(sent: SentMessages): Promise<{ session: Session }> {
  const store = memoryStore()
  const session = await store.create({})
  let transcript: Transcript = emptyTranscript()
  session.subscribe(({ line }) => {
    transcript = reduceTranscript(transcript, { type: 'line', line })
    sent.look(transcript)
  })
  return { session }
}

function states(sent: SentMessages): string[] {
  return sent.messages.map(
    ({ text: words, state, reason }) => `${words}: ${state}${reason === undefined ? '' : ` (${reason})`}`,
  )
}

test('a message is unsent until the server answers, and gone when its run started', async () => {
  const sent = new SentMessages()
  const answer = Promise.withResolvers<PromptResult>()
  const sending = sent.send('hello', 'c1', () => answer.promise)
  expect(states(sent)).toEqual(['hello: unsent'])
  answer.resolve({ outcome: 'started', runId: 'r' })
  await sending
  expect(states(sent)).toEqual([])
})

test('a queued message is accepted, queued, and gone when it is delivered', async () => {
  const sent = new SentMessages()
  const { session } = await conversation(sent)
  await sent.send('later', 'c1', () => Promise.resolve(queued))
  expect(states(sent)).toEqual(['later: accepted'])
  await session.append({ type: 'submission', submission: added })
  expect(states(sent)).toEqual(['later: queued'])
  await session.appendMessage('user', [text('later')], { with: { submissionId: 'm1' } })
  expect(states(sent)).toEqual([])
})

test('a queued message that leaves the queue undelivered was withdrawn', async () => {
  const sent = new SentMessages()
  const { session } = await conversation(sent)
  await session.append({ type: 'submission', submission: added })
  await sent.send('later', 'c1', () => Promise.resolve(queued))
  expect(states(sent)).toEqual(['later: queued'])
  await session.append({ type: 'submission', submission: { action: 'remove', id: 'm1' } })
  expect(states(sent)).toEqual(['later: withdrawn'])
  sent.dismiss('c1')
  expect(states(sent)).toEqual([])
})

test('a refused message stays with its reason, and one that the page gave up stays unsent', async () => {
  const sent = new SentMessages()
  const problem = (type: string): ProblemError =>
    new ProblemError({ type, title: 'T', status: 409, detail: 'Not now.' })
  await sent.send('no', 'c1', () => Promise.reject(problem('session-busy')))
  await sent.send('kept', 'c2', () => Promise.reject(problem('closed')))
  expect(states(sent)).toEqual(['no: refused (Not now.)', 'kept: unsent'])
})

test('a message to a session that is gone is refused and can be edited', async () => {
  const sent = new SentMessages()
  const closed = new ProblemError({ type: 'closed', title: 'Closed', status: 0, detail: 'It is gone.' })
  const session: { status: ConnectionStatus } = { status: { type: 'attached' } }
  const fail = async (reason: 'closed' | 'gone'): Promise<never> => {
    session.status = { type: 'closed', reason }
    throw closed
  }
  await sent.send('kept', 'c1', () => orRefused(session, () => fail('closed')))
  await sent.send('late', 'c2', () => orRefused(session, () => fail('closed')))
  session.status = { type: 'attached' }
  await sent.send('on its way', 'c3', () => orRefused(session, () => fail('gone')))
  expect(states(sent)).toEqual(['kept: unsent', 'late: refused (It is gone.)', 'on its way: refused (It is gone.)'])
})

test('a command without a run shows what it said', async () => {
  const sent = new SentMessages()
  await sent.send('/help', 'c1', () => Promise.resolve({ outcome: 'handled', say: 'Try /compact.' }))
  await sent.send('/quiet', 'c2', () => Promise.resolve({ outcome: 'handled', say: null }))
  expect(states(sent)).toEqual(['/help: answered (Try /compact.)'])
})

test('messages of an earlier visit are unsent until they are answered or delivered', async () => {
  const sent = new SentMessages([
    { id: 'c1', op: 'prompt', args: { text: 'before' } },
    { id: 'c2', op: 'cancel', args: {} },
    { id: 'c3', op: 'follow_up', args: { text: 'refused' } },
  ])
  const { session } = await conversation(sent)
  expect(states(sent)).toEqual(['before: unsent', 'refused: unsent'])
  sent.settle('c3', 'Not now.')
  await session.appendMessage('user', [text('before')], { cause: { cmd: 'c1' } })
  expect(states(sent)).toEqual(['refused: refused (Not now.)'])
})
