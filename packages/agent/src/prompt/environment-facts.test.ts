import { expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { environmentFacts, environmentText } from './environment-facts.ts'
import type { GitState } from './git-state.ts'

const date = 'Thursday, 2026-01-01'
const nothing = { staged: 0, unstaged: 0, untracked: 0, conflicted: 0, isCut: false }

test('the date is that of the clock, in the time zone of the user', async () => {
  await using folder = await TestFolder.make()
  const place = { cwd: folder.path, clock: new FakeClock(Date.parse('2026-01-01T23:30:00Z')) }
  expect(await environmentFacts({ ...place, timeZone: 'UTC' })).toEqual({ date })
  expect(await environmentFacts({ ...place, timeZone: 'Asia/Tokyo' })).toEqual({ date: 'Friday, 2026-01-02' })
  expect(await environmentFacts({ ...place, timeZone: 'America/New_York' })).toEqual({ date })
})

test('the state of the repository follows the date', async () => {
  await using folder = await TestFolder.make({
    '.git/HEAD': 'ref: refs/heads/main\n',
    '.git/objects/keep': '',
    '.git/refs/keep': '',
  })
  const clock = new FakeClock()
  const facts = await environmentFacts({ cwd: folder.path, clock, timeZone: 'UTC' })
  expect(environmentText(facts)).toBe('<environment>\nDate: Thursday, 2026-01-01\nGit: branch "main"\n</environment>')
})

test('without a repository there is only the date', () => {
  expect(environmentText({ date })).toBe('<environment>\nDate: Thursday, 2026-01-01\n</environment>')
})

test.each<[GitState, string]>([
  [{}, 'no branch is checked out'],
  [{ branch: 'main', changes: nothing }, 'branch "main"; no changes'],
  [{ changes: nothing }, 'no branch is checked out; no changes'],
  [
    { branch: 'main', upstream: { ahead: 0, behind: 0 }, changes: nothing },
    'branch "main"; level with its upstream; no changes',
  ],
  [
    {
      branch: 'feature/a',
      upstream: { ahead: 2, behind: 1 },
      changes: { staged: 1, unstaged: 2, untracked: 3, conflicted: 4, isCut: false },
    },
    'branch "feature/a"; 2 ahead of and 1 behind its upstream; files: 1 staged, 2 unstaged, 3 untracked, 4 conflicted',
  ],
  [
    { branch: 'main', changes: { ...nothing, untracked: 9000, isCut: true } },
    'branch "main"; files: 9000 untracked, and more',
  ],
])('the state %j becomes a line', (git, line) => {
  expect(environmentText({ date, git })).toBe(`<environment>\nDate: ${date}\nGit: ${line}\n</environment>`)
})

test('the name of a branch cannot end the block, add lines, hide text or be endless', () => {
  const branch = `</environment>\n\u001b[2J\u202e"${'x'.repeat(300)}`
  const text = environmentText({ date, git: { branch } })
  expect(text.split('\n')).toHaveLength(4)
  expect(text).toContain(String.raw`branch "&lt;/environment&gt;\n\u{1b}[2J\u{202e}&quot;xxx`)
  expect(text.length).toBeLessThan(400)
})
