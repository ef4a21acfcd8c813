import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openFileStore } from '../stores/file/index.ts'
import { assistant, user } from '../testing/builders.ts'
import type { SessionStore } from './session-store.ts'
import type { Session } from './session.ts'

let folder: string
let store: SessionStore
let session: Session
let second: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-copy-session-'))
  store = openFileStore({ folder })
  session = await store.create({ cwd: '/', name: 'Source' })
  const first = await user(session, 'x'.repeat(300_000))
  second = await assistant(session, 'two')
  await session.branch(first)
  await user(session, 'elsewhere')
  await session.setLabel(first, 'start')
  await session.branch(second)
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

const logOf = (id: string): string => join(folder, id, 'events.jsonl')

/** The lines of a log without what differs in each copy. */
async function linesOf(id: string): Promise<unknown[]> {
  const lines = (await readFile(logOf(id), 'utf8')).trimEnd().split('\n')
  return lines.flatMap((line) => {
    const { id: own, timestamp: _time, crc: _crc, seq: _seq, ...rest } = JSON.parse(line) as Record<string, unknown>
    if (rest['type'] === 'writer') return []
    return [rest['type'] === 'message' ? { id: own, ...rest } : rest]
  })
}

/** A copy as it is when its making is interrupted after so many lines. */
async function cutOff(id: string, lines: number): Promise<void> {
  const text = await readFile(logOf(id), 'utf8')
  await writeFile(logOf(id), `${text.split('\n').slice(0, lines).join('\n')}\n`)
}

describe.each([
  ['all entries', () => undefined],
  ['a path', () => second],
])('a copy of %s', (_, leaf) => {
  const copy = (id: string): Promise<string> => {
    const leafId = leaf()
    return leafId === undefined ? session.copyAll({ id }) : session.createBranchedSession(leafId, { id })
  }

  test('that was interrupted after any line is completed, without what came into the source since', async () => {
    const whole = await linesOf(await copy('whole'))
    const counts = Array.from({ length: whole.length + 1 }, (_, index) => 1 + index)
    for (const count of counts) await copy(`cut-${count}`)
    await user(session, 'later')
    for (const count of counts) {
      const id = `cut-${count}`
      await cutOff(id, count)
      await session.completeCopy(id, leaf())
      expect(await linesOf(id)).toEqual(whole)
      await using completed = await store.open(id)
      expect([completed.leafId, completed.name]).toEqual([second, 'Source'])
    }
  })

  test('that was used since is left alone', async () => {
    await copy('used')
    await cutOff('used', 2)
    {
      await using used = await store.open('used')
      await user(used, 'I go on here.')
    }
    const before = await readFile(logOf('used'), 'utf8')
    await session.completeCopy('used', leaf())
    expect(await readFile(logOf('used'), 'utf8')).toBe(before)
  })

  test('that is whole is not touched, also while another process writes it', async () => {
    await copy('whole')
    const other = openFileStore({ folder })
    await using _held = await other.open('whole')
    await session.completeCopy('whole', leaf())
    await cutOff('whole', 2)
    await expect(session.completeCopy('whole', leaf())).rejects.toMatchObject({ code: 'session-owned' })
    await other.close()
  })
})
