import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { say } from '../peers/answers.ts'
import { sessionsFolder } from '../peers/session-files.ts'
import { expectedOf, fixtureBytes, fixtureNames, installFixture } from '../support/fixtures.ts'
import { serve, untilLine } from './served.ts'

interface Expected {
  leafId: string | null
  name: string
  list: { status: string; messageCount: number }
  context: { messages: { entryId: string }[] }
}

test('a server shows the sessions of a data folder in format 1 as before, and leaves their logs as they are', async () => {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  // Sessions without a folder are outside of every root.
  const names = fixtureNames(1).filter((name) => fixtureBytes(1, name).toString().split('\n', 1)[0]?.includes('"cwd"'))
  const logs = names.map((name) => installFixture(sessionsFolder(home), 1, name))
  const served = await serve(home, '--root', '/')

  const { sessions } = (await served.ask('/api/sessions?limit=200')) as unknown as { sessions: { id: string }[] }
  expect(sessions.map(({ id }) => id).toSorted()).toEqual(names)
  for (const name of names) {
    const expected = expectedOf(1, name) as Expected
    const details = await served.ask(`/api/sessions/${name}`)
    expect([name, details]).toMatchObject([
      name,
      { leaf_id: expected.leafId, name: expected.name, message_count: expected.list.messageCount },
    ])
    const { messages } = (await served.ask(`/api/sessions/${name}/context`)) as { messages: { entry_id: string }[] }
    const entries = messages.map(({ entry_id: entryId }) => entryId)
    expect([name, entries]).toEqual([name, expected.context.messages.map(({ entryId }) => entryId)])
  }
  expect((await served.stop()).code).toBe(0)
  for (const [index, log] of logs.entries()) {
    expect((await readFile(log)).equals(fixtureBytes(1, names[index] ?? ''))).toBe(true)
  }
})

test('a session of a data folder in format 1 continues: its lines stay, and new ones follow', async () => {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  // A log without checksums may be edited: its folder must exist here.
  const before = fixtureBytes(1, 'plain-flat').toString().replace('/path/to/project', home.cwd)
  const folder = join(sessionsFolder(home), 'plain-flat')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'events.jsonl'), before)
  home.provider.script(say('A joke.'))
  const served = await serve(home)
  const { head } = (await served.ask('/api/sessions/plain-flat')) as { head: { seq: number } }
  await served.ask('/api/sessions/plain-flat/prompt', { text: 'Go on' })
  await untilLine(served, 'plain-flat', { type: 'run_end', after: head.seq })
  expect((await served.stop()).code).toBe(0)
  const after = await readFile(join(folder, 'events.jsonl'), 'utf8')
  expect(after.startsWith(before)).toBe(true)
  expect(after.slice(before.length)).toContain('A joke.')
})
