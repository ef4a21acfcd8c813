import { expect, test } from 'vitest'
import { displayWidth } from '../../text/display-width.ts'
import { themeFor } from '../theme.ts'
import { sidebarRows, type SidebarOptions } from './sidebar.ts'

const theme = themeFor({ theme: 'dark', color: false })
const nothing: SidebarOptions = {
  name: undefined,
  folder: '/app',
  branch: 'main',
  contextTokens: undefined,
  contextWindow: undefined,
  tokens: 0,
  cost: 0,
  plan: [],
  work: { files: [], jobs: [] },
  subagents: [],
  theme,
  width: 34,
  rows: 40,
}

function sidebarLines(options: SidebarOptions): string[] {
  return sidebarRows(options).map(({ text }) => text)
}

test('the sidebar shows what the session does and has done, and nothing that is not there', () => {
  expect(sidebarLines(nothing).filter((line) => line !== '')).toEqual(['app (main)'])
  const lines = sidebarLines({
    ...nothing,
    name: 'Mend the parser',
    contextTokens: 25_000,
    contextWindow: 100_000,
    tokens: 31_000,
    cost: 0.4,
    plan: [
      { text: 'Read', status: 'completed' },
      { text: 'Write', status: 'in_progress' },
      { text: 'Test', status: 'pending' },
    ],
    work: {
      files: [{ path: 'src/a/very/deep/folder/of/things/parser.ts', added: 12, removed: 4 }],
      jobs: [
        { command: 'npm run watch', state: 'running', isRunning: true },
        { command: 'npm test', state: 'exit code 1', isRunning: false },
      ],
    },
    subagents: [
      { id: 'child', name: 'Count', text: '[grep x]', isRunning: true, tokens: 2000, cost: 0.1, messageCount: 3 },
    ],
  })
  expect(`\n${lines.join('\n').trimEnd()}\n`).toBe(`
Mend the parser
app (main)

Context
███░░░░░░░░░ 25% of 100k
31k tokens · $0.40

Tasks: 1 of 3 done
✓ Read
▸ Write
○ Test

1 changed file
…/parser.ts                 +12 −4

Subagents
● Count
  [grep x] · 2k tokens · $0.10

Background jobs
● npm run watch
✗ npm test · exit code 1
`)
})

test('the sidebar has as many rows as the screen, none too wide, and counts what has no place', () => {
  const path = (index: number): string => `folder/a-file-with-a-very-long-name-${index}-漢字漢字漢字.ts`
  const files = Array.from({ length: 30 }, (_, index) => ({ path: path(index), added: index, removed: 1000 }))
  const plan = Array.from({ length: 30 }, (_, index) => ({
    text: `Task ${index} ${'words '.repeat(20)}`,
    status: index < 20 ? ('completed' as const) : ('pending' as const),
  }))
  for (const rows of [1, 5, 40]) {
    const lines = sidebarLines({ ...nothing, work: { files, jobs: [] }, plan, rows })
    expect(lines).toHaveLength(rows)
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(34)
  }
  const shown = sidebarLines({ ...nothing, work: { files, jobs: [] }, plan }).join('\n')
  expect(shown).toContain('30 changed files')
  expect(shown).toContain('… 22 more files')
  // The task before the next one is in view.
  expect(shown).toContain('✓ Task 19')
  expect(shown).toContain('○ Task 20')
})
