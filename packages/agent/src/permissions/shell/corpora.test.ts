import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { noRules } from '../rules.ts'
import { judgeCommand } from '../judge-command.ts'

/** One command per line, with `⏎` for a line break inside a command and `# ` before a remark. */
function readCorpus(name: string): string[] {
  const text = readFileSync(new URL(`../../../../../tests/corpus/${name}`, import.meta.url), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# '))
    .map((line) => line.replaceAll('⏎', '\n'))
}

async function thoseWith(
  effect: 'allow' | 'ask',
  commands: readonly string[],
  files: Record<string, string> = {},
): Promise<string[]> {
  await using folder = await TestFolder.make(files)
  const policy = { mode: 'ask', rules: noRules, cwd: folder.path, home: '/home/somebody' } as const
  return commands.filter((command) => judgeCommand(command, { cwd: folder.path, policy }).effect === effect)
}

const bypasses = readCorpus('shell-bypass.txt')
const everyday = readCorpus('shell-everyday.txt')

test('no command that does more than read is allowed', async () => {
  expect(new Set(bypasses).size).toBe(bypasses.length)
  expect(bypasses.length).toBeGreaterThanOrEqual(400)
  // Some need a file that a wildcard turns into an option.
  expect(await thoseWith('allow', bypasses, { '-oC': '' })).toEqual([])
})

test('at most one in twenty everyday read-only commands requires a request', async () => {
  const asked = await thoseWith('ask', everyday)
  expect(asked.length, `asked:\n${asked.join('\n')}`).toBeLessThanOrEqual(everyday.length * 0.05)
})

test('the everyday commands are diverse', () => {
  const programs = new Set(everyday.flatMap(programsIn))
  expect(new Set(everyday).size).toBe(everyday.length)
  expect(everyday.length).toBeGreaterThanOrEqual(300)
  expect(programs.size).toBeGreaterThanOrEqual(60)
  expect([...programs]).toEqual(expect.arrayContaining(['git', 'npm', 'jq', 'sed', 'find']))
  expect(everyday.filter((command) => command.startsWith('sed -n')).length).toBeGreaterThan(0)
  expect(everyday.filter((command) => /[|'";&]|\n/.test(command)).length).toBeGreaterThanOrEqual(100)
})

/** The first word of each part, if it is the name of a program and not a shell keyword. */
function programsIn(command: string): string[] {
  const words = command.split(/\|\|?|&&|;/).map((part) => part.trim().split(' ')[0] ?? '')
  return words.filter((word) => /^[a-z][a-z0-9+-]*$/.test(word) && !shellWords.has(word))
}

const shellWords = new Set(['if', 'then', 'else', 'fi', 'for', 'do', 'done', 'while', 'case', 'esac', 'time'])
