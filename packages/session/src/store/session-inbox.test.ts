import { describe, expect, test } from 'vitest'
import type { Content } from '../line/message.ts'
import type { Session } from './session.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'

/** A session with one queued message, and a delivery that continues when the gate is opened. */
async function delivering(): Promise<{
  session: Session
  id: string
  gate: PromiseWithResolvers<Content[]>
  delivered: Promise<string>
}> {
  const session = await memoryStore().create()
  const { id } = await session.submit('one')
  const gate = Promise.withResolvers<Content[]>()
  return { session, id, gate, delivered: session.deliver(id, { images: () => gate.promise }) }
}

/** The state of a promise after everything that can continue has done so. */
async function soFar(promise: Promise<unknown>): Promise<string> {
  let state = 'open'
  promise.then(
    () => (state = 'done'),
    (error: { code: string }) => (state = error.code),
  )
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  return state
}

describe('a message that is being taken', () => {
  test('is rejected for others only when the removal is durable: after a crash it would be queued again', async () => {
    const { session, id, gate, delivered } = await delivering()
    const [moved, removed] = [
      session.changeInbox({ action: 'move', id, beforeId: null }),
      session.changeInbox({ action: 'remove', id }),
    ]
    expect(await Promise.all([soFar(moved), soFar(removed)])).toEqual(['open', 'open'])
    gate.resolve([])
    await delivered
    expect(await Promise.all([soFar(moved), soFar(removed)])).toEqual(['message-not-found', 'message-not-found'])
  })

  test('can be taken by others if the removal fails', async () => {
    const { session, id, gate, delivered } = await delivering()
    const [held, removed] = [session.changeInbox({ action: 'hold', id }), session.changeInbox({ action: 'remove', id })]
    gate.reject(new Error('The image is gone.'))
    await expect(delivered).rejects.toThrow('The image is gone.')
    expect(await Promise.all([soFar(held), soFar(removed)])).toEqual(['done', 'done'])
    expect(session.inbox.messages).toEqual([])
  })

  test('is rejected for others after the line that clears all messages', async () => {
    const session = await memoryStore().create()
    const { id } = await session.submit('one')
    const cleared = session.changeInbox({ action: 'clear' })
    const before = session.head.seq
    await expect(session.changeInbox({ action: 'hold', id })).rejects.toMatchObject({ code: 'message-not-found' })
    expect(session.head.seq).toBe(before + 1)
    await cleared
  })
})

test('an unknown message is rejected at once', async () => {
  const session = await memoryStore().create()
  await expect(session.changeInbox({ action: 'hold', id: 'q-0-00000000' })).rejects.toMatchObject({
    code: 'message-not-found',
  })
})
