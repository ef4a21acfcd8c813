import { assistant, user } from '@tapetree/session/testing'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome

beforeEach(async () => {
  home = await SessionHome.make()
})

afterEach(() => home[Symbol.asyncDispose]())

/** A session whose third line has a wrong letter, and the offset of that line. */
async function damagedSession(): Promise<{ id: string; at: number }> {
  const id = await home.session(async (session) => {
    await user(session, 'hello')
    await assistant(session, 'good day')
  })
  const log = await readFile(home.logOf(id), 'utf8')
  await writeFile(home.logOf(id), log.replace('hello', 'jello'))
  return { id, at: log.split('\n', 2).join('\n').length + 1 }
}

test('each fault is reported with its line and byte, and the exit code means damaged', async () => {
  const whole = await home.session((session) => user(session, 'fine'))
  const { id, at } = await damagedSession()
  expect(await home.run(['log', 'verify', whole])).toMatchObject({ code: 0, out: `${whole}  ok, 3 lines\n` })
  const { code, out, err } = await home.run(['log', 'verify', '--all'])
  expect(code).toBe(7)
  expect(out).toMatch(
    new RegExp(`^${id}  DAMAGED, 3 lines read, 1 lost\\n  line 3 at byte ${at} \\(\\d+ bytes, 1 lost\\): `),
  )
  expect(out).not.toContain(whole)
  expect(err).toContain(
    `1 of 2 damaged. Everything else is readable. To acknowledge the damage: tapetree log repair ${id}`,
  )
  expect(await home.json('log', 'verify', id)).toMatchObject({
    reports: [{ is_intact: false, damage: [{ seq: 3, at }] }],
  })
})

test('a repair appends a record of the damage and removes nothing', async () => {
  const { id } = await damagedSession()
  await appendFile(home.logOf(id), '{"seq":5,"ty')
  const before = await readFile(home.logOf(id), 'utf8')
  const { code, err } = await home.run(['log', 'repair', id])
  expect(code).toBe(0)
  expect(err).toContain('Removed 12 bytes of an unfinished line')
  expect(err).toContain('Appended a record that names 1 damaged place.')
  const after = await readFile(home.logOf(id), 'utf8')
  expect(after.startsWith(before.slice(0, -12))).toBe(true)
  expect(after).toContain('"type":"damage"')
  expect((await home.run(['log', 'repair', id])).err).toContain('This damage was already acknowledged.')
  expect((await home.run(['sessions', 'show', id])).out).toContain('damage        1 place (acknowledged;')
})

test('log verify needs a session or --all', async () => {
  expect((await home.run(['log', 'verify'])).code).toBe(2)
  expect((await home.run(['log', 'verify', 'last', '--all'])).code).toBe(2)
  expect((await home.run(['log', 'verify', '--all'])).err).toBe('0 logs are intact.\n')
})
