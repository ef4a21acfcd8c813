import { memoryStore, Queue, type SessionStore } from '@tapetree/session'
import { newSubmissionId } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'

async function sessionIn(store: SessionStore): Promise<string> {
  await using session = await store.create({ cwd: '/' })
  return session.id
}

verifies(
  ['session-management/store queue', 'session-management/queue one-session', 'session-management/queue message-type'],
  'a store gives the queue of any of its sessions, and what waits in one does not wait in another',
  async () => {
    const store = memoryStore()
    const [one, two] = [store.queue(await sessionIn(store)), store.queue(await sessionIn(store))]
    expect(one).toBeInstanceOf(Queue)
    const message = await one.add('only here', ['img-1'], 'phone')
    expect(message).toMatchObject({ message: 'only here', image_ids: ['img-1'], client_id: 'phone' })
    expect(Date.parse(message.queued_at)).not.toBeNaN()
    expect([await one.length(), await two.length()]).toEqual([1, 0])
  },
)

verifies(
  ['session-management/queue example-add', 'session-management/queue example-pop', 'session-management/queue empty'],
  'the example of the document: a message is added, taken out when the agent is idle, and then there is none',
  async () => {
    const store = memoryStore()
    const queue = store.queue(await sessionIn(store))
    const added = await queue.add("What's the status?", null, 'client-123')
    const popped = await queue.pop()
    expect(popped).toEqual(added)
    await expect(queue.pop()).rejects.toMatchObject({ code: 'queue-empty' })
  },
)

verifies(
  ['session-management/queue not-found'],
  'a message that does not wait can be neither looked at nor removed',
  async () => {
    const store = memoryStore()
    const queue = store.queue(await sessionIn(store))
    await expect(queue.get('q-1-00000000')).rejects.toMatchObject({ code: 'message-not-found' })
    await expect(queue.remove('q-1-00000000')).rejects.toMatchObject({ code: 'message-not-found' })
  },
)

verifies(
  ['session-management/queue fifo', 'session-management/queue concurrent', 'session-management/store instances'],
  'whoever adds through whichever instance, each message waits once, in one order, and goes out first in, first out',
  async () => {
    const store = openFileStore({ folder: temporaryFolder() })
    const sessionId = await sessionIn(store)
    const texts = Array.from({ length: 40 }, (_, index) => `message ${index}`)
    await Promise.all(texts.map((words) => store.queue(sessionId).add(words)))
    const order = (await store.queue(sessionId).list()).map(({ message }) => message)
    expect([...order].sort()).toEqual([...texts].sort())
    const popped: string[] = []
    while ((await store.queue(sessionId).length()) > 0) popped.push((await store.queue(sessionId).pop()).message)
    expect(popped).toEqual(order)
  },
)

verifies(
  ['session-management/id format', 'session-management/id unique', 'session-management/id readable'],
  'the id of a message has the second it was queued in and eight random digits, and no two are the same',
  () => {
    const later = Date.parse('2030-02-01T08:00:00Z')
    const ids = Array.from({ length: 1000 }, () => newSubmissionId(later))
    expect(ids.every((id) => /^q-1896163200-[0-9a-f]{8}$/.test(id))).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
  },
)

verifies(['session-management/id sortable'], 'ids sort by the second they were queued in', () => {
  const times = [1990000000, 1990000001, 1990003200].map((second) => second * 1000)
  const ids = times.map((time) => newSubmissionId(time))
  expect([...ids].reverse().sort()).toEqual(ids)
})

verifies(
  ['session-management/storage format', 'session-management/storage separate', 'session-management/storage transient'],
  'queue.json holds what waits, in the shape of the document, and nothing of what has gone',
  async () => {
    const folder = temporaryFolder()
    const store = openFileStore({ folder })
    await using session = await store.create({ cwd: '/' })
    const queue = store.queue(session.id)
    await queue.add('gone soon')
    const kept = await queue.add("What's the status?", [], 'a1b2c3d4')
    await queue.pop()
    await session.saveDerived()
    const file: unknown = JSON.parse(readFileSync(join(session.localFolder ?? '', 'queue.json'), 'utf8'))
    expect(file).toEqual({
      messages: [
        { id: kept.id, message: "What's the status?", image_ids: [], queued_at: kept.queued_at, client_id: 'a1b2c3d4' },
      ],
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    })
  },
)

verifies(
  ['session-management/storage append-only', 'session-management/queue atomic'],
  'adding and clearing only append to the log, and the copy is whole at every moment: it is put there by a rename',
  async () => {
    const store = openFileStore({ folder: temporaryFolder() })
    await using session = await store.create({ cwd: '/' })
    const folder = session.localFolder ?? ''
    const log = (): string => readFileSync(join(folder, 'events.jsonl'), 'utf8')
    const queue = store.queue(session.id)
    await queue.add('one')
    const before = log()
    await queue.clear()
    expect(log().startsWith(before)).toBe(true)
    await session.saveDerived()
    expect(existsSync(join(folder, 'queue.json'))).toBe(true)
    expect(readdirSync(folder).filter((name) => name.includes('tmp'))).toEqual([])
    expect(await queue.list()).toEqual([])
  },
)

verifies(['session-management/storage no-limit'], 'any number of messages may wait', async () => {
  const store = memoryStore()
  await using session = await store.create({ cwd: '/' })
  const queue = store.queue(session.id)
  await Promise.all(Array.from({ length: 2000 }, (_, index) => queue.add(`message ${index}`)))
  expect(await queue.length()).toBe(2000)
})
