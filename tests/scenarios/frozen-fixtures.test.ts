import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { text, type Session, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  expectedOf,
  fixtureBytes,
  fixtureFolder,
  fixtureNames,
  installFixture,
  meaningOf,
} from '../support/fixtures.ts'
import { saidIn } from '../support/said.ts'
import { storedIn, type Stored } from '../support/stored.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const formats = [1]
/** Read-only for this build, and what it says that it would need. */
const newer: Record<string, string> = {
  'newer-format': 'format 2',
  'critical-entry': 'entries of type redaction',
  'critical-record': 'records of type key_rotation',
}
/** Bytes behind the last newline, which were never acknowledged. */
const torn = ['torn-tail', 'nul-tail']

describe.each(formats)('the frozen logs of format %i', (format) => {
  test('have not been edited since they were made', () => {
    const folder = fixtureFolder(format)
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile() && file.name !== 'sha256.txt')
      .map((file) => join(file.parentPath, file.name))
    const sums = files.map((file) => `${sha256(readFileSync(file))}  ${relative(folder, file).replaceAll('\\', '/')}`)
    expect(sums.toSorted()).toEqual(readFileSync(join(folder, 'sha256.txt'), 'utf8').trimEnd().split('\n').toSorted())
  })

  test.each(fixtureNames(format))(
    '%s means what it meant, also when it is opened from its checkpoint',
    async (name) => {
      const folder = temporaryFolder()
      installFixture(folder, format, name)
      const first = await open(folder, name)
      expect(await meaningOf(first.store, first.session)).toEqual(expectedOf(format, name))
      await first.session.saveDerived()
      await first.session.close()
      const second = await open(folder, name)
      expect(await meaningOf(second.store, second.session)).toEqual(expectedOf(format, name))
    },
  )

  test.each(fixtureNames(format))('%s is read without a trace by who only reads', async (name) => {
    const folder = temporaryFolder()
    const path = installFixture(folder, format, name)
    const { session } = await open(folder, name, { readOnly: true })
    expect(await saidIn(session)).toHaveLength(messagesExpected(format, name))
    await session.close()
    expect(readFileSync(path)).toEqual(fixtureBytes(format, name))
  })

  test.each(fixtureNames(format).filter((name) => !(name in newer) && !torn.includes(name)))(
    '%s keeps every byte when it is opened, appended to and closed',
    async (name) => {
      const folder = temporaryFolder()
      const path = installFixture(folder, format, name)
      const { session } = await open(folder, name)
      const leaf = session.leafId
      const id = await session.appendMessage('user', [text('appended later')])
      expect((await session.getEntry(id)).parentId).toBe(leaf)
      await session.close()
      const before = fixtureBytes(format, name)
      const after = readFileSync(path)
      expect(after.subarray(0, before.length)).toEqual(before)
      expect(after.subarray(before.length).toString().trimEnd().split('\n')).toHaveLength(2)
    },
  )

  test.each(torn)('%s loses only what was never acknowledged, and keeps a copy of that', async (name) => {
    const folder = temporaryFolder()
    const path = installFixture(folder, format, name)
    const { session } = await open(folder, name)
    await session.close()
    const before = fixtureBytes(format, name)
    const end = before.lastIndexOf('\n') + 1
    expect(readFileSync(path)).toEqual(before.subarray(0, end))
    expect(readFileSync(`${path}.torn-1`)).toEqual(before.subarray(end))
  })

  test.each(Object.entries(newer))(
    '%s opens read-only, says that it has %s, and keeps every byte',
    async (name, needed) => {
      const folder = temporaryFolder()
      const path = installFixture(folder, format, name)
      const { session } = await open(folder, name)
      expect(session.readOnlyReason).toContain(needed)
      expect(session.readOnlyReason).toContain('a newer version of tapetree')
      const writes = [
        session.appendMessage('user', [text('no')]),
        session.setLabel('u-1', 'no'),
        session.branch('u-1'),
        session.submit('no'),
        session.repair().then(() => session.putBlob(Uint8Array.of(1))),
      ]
      for (const write of writes) await expect(write).rejects.toMatchObject({ code: 'newer-format' })
      await session.close()
      expect(readFileSync(path)).toEqual(fixtureBytes(format, name))
    },
  )

  test('members and types that this build does not know are copied with the lines they are on', async () => {
    const folder = temporaryFolder()
    installFixture(folder, format, 'newer-members')
    const { store, session } = await open(folder, 'newer-members')
    const fork = await store.forkFrom('newer-members')
    expect((await storedIn(fork)).filter(isEntry).map(withoutNumbers)).toEqual(
      (await storedIn(session)).filter(isEntry).map(withoutNumbers),
    )
  })
})

async function open(
  folder: string,
  name: string,
  options?: { readOnly: boolean },
): Promise<{ store: SessionStore; session: Session }> {
  const store = openFileStore({ folder })
  onTestFinished(() => store.close())
  return { store, session: await store.open(name, options) }
}

function messagesExpected(format: number, name: string): number {
  const { context } = expectedOf(format, name) as { context: { messages: unknown[] } }
  return context.messages.length
}

function isEntry(line: Stored): boolean {
  return 'parent_id' in line
}

function withoutNumbers({ seq: _seq, crc: _crc, ...line }: Stored): Stored {
  return line
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
