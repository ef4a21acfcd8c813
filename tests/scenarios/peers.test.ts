import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Session, SessionStore } from '@tapetree/session'
import type { QueuedMessage } from '@tapetree/session/log-store'
import { nodeFilePort, openFileStore, type FilePort, type LockAttempt } from '@tapetree/session/stores/file'
import { describe, expect, test } from 'vitest'
import { openElsewhere } from '../support/other-process.ts'
import { filePlace } from '../support/places.ts'
import { answer, ask, saidIn } from '../support/said.ts'
import { textsOf } from '../support/stored.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// What was seen to go wrong elsewhere, and what happens here instead.

describe('last line of the log torn', () => {
  test('everything acknowledged is there, the torn bytes are kept aside, and the next line is not welded to them', async () => {
    const { folder, store, session } = await conversation(['one', 'two'])
    await session.close()
    const log = join(folder, session.id, 'events.jsonl')
    const torn = '{"seq":5,"type":"message","id":"m-5","parent_id":"m'
    appendFileSync(log, torn)
    expect(await store().verify(session.id)).toMatchObject({ isIntact: false, unfinishedBytes: torn.length })
    const again = await store().open(session.id)
    await ask(again, 'three')
    expect(await saidIn(again)).toEqual(['user: one', 'user: two', 'user: three'])
    expect(readFileSync(`${log}.torn-1`, 'utf8')).toBe(torn)
    expect(linesOf(log).filter((line) => !isJson(line))).toEqual([])
  })

  test('a last line that lost only its newline is whole, and gets it back', async () => {
    const { folder, store, session } = await conversation(['one', 'two'])
    await session.close()
    const log = join(folder, session.id, 'events.jsonl')
    const before = readFileSync(log)
    writeFileSync(log, before.subarray(0, -1))
    const again = await store().open(session.id)
    expect(await saidIn(again)).toEqual(['user: one', 'user: two'])
    expect(readFileSync(log)).toEqual(before)
  })
})

describe('a corrupt line in the middle', () => {
  test('costs that line only: what came before and after it stays in the context, and the loss is reported', async () => {
    const { folder, store, session } = await conversation(['one', 'two', 'three', 'four'])
    await session.close()
    const log = join(folder, session.id, 'events.jsonl')
    const damaged = readFileSync(log, 'utf8').replace('two', 'twx')
    writeFileSync(log, damaged)
    const again = await store().open(session.id)
    expect(await saidIn(again)).toEqual(['user: one', 'user: three', 'user: four'])
    expect(again.damage).toMatchObject([{ seq: 4, count: 1, isNew: true }])
    expect(readFileSync(log, 'utf8')).toBe(damaged)
    expect(await again.repair()).toBe(1)
    expect(again.damage).toMatchObject([{ seq: 4, isNew: false }])
  })
})

describe('disk full, space freed, go on', () => {
  test('the failed append is refused, nothing acknowledged is lost, and all 41 messages are there after a reload', async () => {
    const folder = temporaryFolder()
    const disk = fillableDisk()
    const store = openFileStore({ folder, port: disk.port })
    const session = await store.create()
    for (let index = 0; index < 40; index++) await ask(session, `message ${index}`)
    disk.room = 70
    const refused = await Promise.allSettled(['lost', 'lost too', 'and this'].map((words) => ask(session, words)))
    expect(refused.map((each) => each.status === 'rejected' && (each.reason as { code: string }).code)).toEqual([
      'storage-failed',
      'storage-failed',
      'storage-failed',
    ])
    expect(session.storageFailure?.code).toBe('storage-failed')
    disk.room = Infinity
    await ask(session, 'message 40')
    expect(session.storageFailure).toBeUndefined()
    await session.close()
    const again = await filePlace(folder).store().open(session.id)
    expect(await saidIn(again)).toEqual(Array.from({ length: 41 }, (_, index) => `user: message ${index}`))
    expect(again.damage).toEqual([])
  })
})

describe('two processes on one session', () => {
  test('the second one is told who writes, reads along, and writes nothing', async () => {
    const { folder, store, session } = await conversation(['one'])
    await session.close()
    const other = await openElsewhere(folder, session.id)
    const second = await store().open(session.id)
    expect(second.owner).toMatchObject({ host: hostname(), process: String(other.pid) })
    expect(second.readOnlyReason).toContain(`Process ${other.pid}`)
    await expect(ask(second, 'mine')).rejects.toMatchObject({ code: 'read-only' })
    expect(await other.ask('two')).toBe('ok')
    await second.refresh()
    expect(await saidIn(second)).toEqual(['user: one', 'user: two'])
    await second.close()
  })

  test('when the first one is killed, the next opener writes at once and has everything', async () => {
    const { folder, store, session } = await conversation(['one'])
    await session.close()
    const other = await openElsewhere(folder, session.id)
    expect(await other.ask('two')).toBe('ok')
    await other.kill()
    const next = await store().open(session.id)
    await ask(next, 'three')
    expect(await saidIn(next)).toEqual(['user: one', 'user: two', 'user: three'])
  })

  test('with the lock defeated the loser is stopped, and every acknowledged entry stays visible', async () => {
    const { folder, store, session } = await conversation(['one'])
    await session.close()
    const other = await openElsewhere(folder, session.id)
    expect(await other.ask('two')).toBe('ok')
    const lock = async (): Promise<LockAttempt> => ({
      type: 'locked',
      lock: { kind: 'ofd', isIntact: () => true, release: () => undefined },
    })
    const defeated = openFileStore({ folder, lock })
    const second = await defeated.open(session.id)
    await ask(second, 'three')
    expect(await other.ask('written over?')).toBe('fenced')
    expect(await other.ask('and now?')).toBe('fenced')
    await ask(second, 'four')
    await defeated.close()
    await other.kill()
    const again = await store().open(session.id)
    expect(await saidIn(again)).toEqual(['user: one', 'user: two', 'user: three', 'user: four'])
    expect(again.damage).toEqual([])
  })
})

describe('parent cycle in the file', () => {
  test.each([
    { ids: ['a', 'b', 'c'], parents: ['c', 'a', 'b'] },
    { ids: ['a'], parents: ['a'] },
  ])(
    '$ids with parents $parents: opens at once, shows every message, is reported, and goes on',
    async ({ ids, parents }) => {
      const session = await filePlace(temporaryFolder()).load([
        '{"type":"session","id":"cycle","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
        ...ids.map(
          (id, index) =>
            `{"type":"message","id":"${id}","parent_id":"${parents[index]}","timestamp":"2024-01-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"${id}"}}]}}`,
        ),
      ])
      expect(session.damage.map(({ reason }) => reason)).toEqual([`entry ${parents[0]} is referenced but missing`])
      await ask(session, 'on')
      expect(await saidIn(session)).toEqual([...ids, 'on'].map((words) => `user: ${words}`))
      expect(JSON.stringify(await session.getTree()).length).toBeLessThan(4000)
    },
  )
})

describe('go back to an earlier entry, restart', () => {
  test('the move is kept, and a label written later does not become the leaf', async () => {
    const { store, session, ids } = await conversation(['one', 'two', 'three'])
    await session.branch(ids[0] ?? '')
    await session.setLabel(ids[2] ?? '', 'the old end')
    await session.appendSessionInfo('A name')
    await session.close()
    const again = await store().open(session.id)
    expect(again.leafId).toBe(ids[0])
    const next = await answer(again, 'another way')
    expect((await again.getEntry(next)).parentId).toBe(ids[0])
    expect(await saidIn(again)).toEqual(['user: one', 'assistant: another way'])
  })
})

describe('independent queue objects on one session', () => {
  const messages = Array.from({ length: 200 }, (_, index) => `message ${index}`)

  test('200 concurrent adds are all there, in order, and valid on disk', async () => {
    const { folder, store, session } = await conversation([])
    const shared = store()
    await session.close()
    const added = await Promise.all(messages.map((message) => shared.queue(session.id).add(message)))
    expect(textsIn(await shared.queue(session.id).list())).toEqual(messages)
    expect(added.map(({ id }) => id).toSorted()).toEqual(added.map(({ id }) => id))
    await shared.close()
    expect(textsIn(await store().queue(session.id).list())).toEqual(messages)
    const copy = JSON.parse(readFileSync(join(folder, session.id, 'queue.json'), 'utf8')) as {
      messages: QueuedMessage[]
    }
    expect(textsIn(copy.messages)).toEqual(messages)
  })

  test('each is delivered once and in order, however many objects pop at once', async () => {
    const { store, session } = await conversation([])
    const shared = store()
    await session.close()
    await Promise.all(messages.map((message) => shared.queue(session.id).add(message)))
    const popped = await Promise.allSettled([...messages, 'one too many'].map(() => shared.queue(session.id).pop()))
    const delivered = popped.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const refused = popped.flatMap((each) =>
      each.status === 'rejected' ? [(each.reason as { code: string }).code] : [],
    )
    expect(textsIn(delivered)).toEqual(messages)
    expect(refused).toEqual(['queue-empty'])
    expect(await shared.queue(session.id).length()).toBe(0)
  })

  test('a message that becomes a user message is out of the queue with the same line', async () => {
    const { store, session } = await conversation(['start'])
    const { id } = await session.submit('next')
    const before = await textsOf(session)
    await session.deliver(id)
    expect((await textsOf(session)).length - before.length).toBe(1)
    await session.close()
    const again = await store().open(session.id)
    expect({ waiting: again.inbox.messages, said: await saidIn(again) }).toEqual({
      waiting: [],
      said: ['user: start', 'user: next'],
    })
  })
})

interface Conversation {
  folder: string
  store: () => SessionStore
  session: Session
  ids: string[]
}

/** A session in a real folder in which these words were said. */
async function conversation(words: readonly string[]): Promise<Conversation> {
  const folder = temporaryFolder()
  const { store } = filePlace(folder)
  const session = await store().create()
  const ids: string[] = []
  for (const each of words) ids.push(await ask(session, each))
  return { folder, store: () => store(), session, ids }
}

/** A disk with room for so many bytes more. As the real one does, it takes the part of a write that fits and says how much. */
function fillableDisk(): { port: FilePort; room: number } {
  const real = nodeFilePort()
  const disk = {
    room: Infinity,
    port: {
      ...real,
      write: (fd: number, bytes: Uint8Array): number => {
        const written = real.write(fd, bytes.subarray(0, Math.min(bytes.length, disk.room)))
        disk.room -= written
        return written
      },
    },
  }
  return disk
}

function textsIn(queued: readonly QueuedMessage[]): string[] {
  return queued.map(({ message }) => message)
}

function linesOf(path: string): string[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n')
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}
