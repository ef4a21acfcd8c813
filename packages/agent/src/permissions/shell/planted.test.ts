import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { TestFolder } from '../../testing/test-folder.ts'
import { permissionModes } from '../modes.ts'
import { noRules, ruleSchema } from '../rules.ts'
import { judgeCommand } from '../judge-command.ts'

/**
 * Commands that are harmless in an empty folder and do harm in a prepared folder. Paths are relative to the repository.
 */
const caseSchema = z.strictObject({
  about: z.string(),
  links: z.record(z.string(), z.string()).default({}),
  files: z.record(z.string(), z.string()).default({}),
  /** Commits everything, also `.env`. */
  repository: z.boolean().default(false),
  mode: z.enum(permissionModes).default('ask'),
  rules: z.array(ruleSchema).default([]),
  commands: z.array(z.string()),
})
type Case = z.output<typeof caseSchema>

const corpus = new URL('../../../../../tests/corpus/shell-planted.json', import.meta.url)
const cases = z.array(caseSchema).parse(JSON.parse(readFileSync(corpus, 'utf8')))

const secret = 'S3NTINEL\n'
const base: Record<string, string> = {
  '.ssh/id_rsa': secret,
  '.aws/credentials': secret,
  '.netrc': secret,
  '.config/gh/hosts.yml': secret,
  '.kube/config': secret,
  'private/x': secret,
  'repo/.env': secret,
  'repo/a.txt': 'alpha\nbeta\n',
  'repo/b.txt': 'beta\n',
  'repo/a.json': '{}\n',
  'repo/p.sh': '#!/bin/sh\ntouch C\n',
}

async function plant({ links, files, repository }: Pick<Case, 'links' | 'files' | 'repository'>): Promise<TestFolder> {
  const home = await TestFolder.make(base)
  for (const [name, text] of Object.entries(files))
    await home.write(join('repo', name.replace('{home}', home.path)), text)
  if (repository) {
    const git = (...words: string[]): void => {
      execFileSync('git', ['-C', home.at('repo'), '-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
        stdio: 'ignore',
      })
    }
    git('init', '-q')
    git('commit', '-q', '--allow-empty', '-m', 'first')
    git('add', '-A', '-f')
    git('commit', '-q', '-m', 'second')
  }
  for (const [name, target] of Object.entries(links)) {
    const path = home.at(join('repo', name))
    await mkdir(dirname(path), { recursive: true })
    await rm(path, { force: true })
    await symlink(target, path)
  }
  return home
}

describe('a command is not allowed in a folder with', () => {
  test.each(cases)('$about', async (each) => {
    await using home = await plant(each)
    const cwd = home.at('repo')
    const policy = { mode: each.mode, rules: { ...noRules, user: each.rules }, cwd, home: home.path }
    const passed = each.commands.filter((command) => judgeCommand(command, { cwd, policy }).effect === 'allow')
    expect(passed).toEqual([])
  })
})

describe('a command is allowed in a folder with', () => {
  async function asked(folder: Partial<Case>, commands: readonly string[]): Promise<string[]> {
    await using home = await plant({ links: {}, files: {}, repository: false, ...folder })
    await rm(home.at('repo/.env'))
    if (folder.repository) execFileSync('git', ['-C', home.at('repo'), 'rm', '-q', '--cached', '.env'])
    const cwd = home.at('repo')
    const policy = { mode: 'ask', rules: noRules, cwd, home: home.path } as const
    return commands.filter((command) => judgeCommand(command, { cwd, policy }).effect !== 'allow')
  }

  const lists = [
    'find . -type f | xargs wc -l',
    'ls | xargs cat',
    'cat $(git ls-files)',
    'git ls-files | xargs head -n 1',
  ]
  const searches = ['grep -R alpha .', 'rg -L alpha', 'diff -r docs src', 'cat *.txt', 'for f in *; do wc -l $f; done']

  test('ordinary files', async () => {
    const files = { 'docs/a.md': 'x', 'src/a.ts': 'x' }
    expect(await asked({ files, repository: true }, [...lists, ...searches])).toEqual([])
  })

  test('links that stay inside it', async () => {
    const commands = [...searches, 'cat docs/../a.txt', 'cat inside/../a.txt', 'cd inside && cat a.ts']
    expect(await asked({ links: { inside: 'src', 'z.txt': 'a.txt' }, files: { 'src/a.ts': '' } }, commands)).toEqual([])
  })

  test('names with blanks, if they are split at their ends', async () => {
    const files = { 'docs/a b.md': 'x' }
    const commands = [
      'find . -name "*.md" -print0 | xargs -0 wc -l',
      'git ls-files -z | xargs -0 head -n 1',
      `find docs -print0 | while IFS= read -r -d '' f; do head -n 1 "$f"; done`,
      'for f in docs/*; do cat "$f"; done',
    ]
    expect(await asked({ files, repository: true }, commands)).toEqual([])
  })

  test('a secret that the listing or the limits of git exclude', async () => {
    const files = { 'keys/.env': 'x', 'src/a.ts': 'x' }
    const commands = [
      'find . -name "*.ts" | xargs wc -l',
      `find . \\( -name '*.ts' -o -name '*.md' \\) | xargs cat`,
      `find . -type f -not -path '*/keys/*' | xargs cat`,
      "git ls-files '*.ts' | xargs cat",
      'git diff -- src',
      'git diff src',
      'git log -p -- src/a.ts',
      'git log -L1,1:src/a.ts',
      'git show HEAD:src/a.ts',
      'git show --stat',
      'git diff --name-only HEAD~1',
      'git log --oneline',
    ]
    expect(await asked({ files, repository: true }, commands)).toEqual([])
  })

  test('tracked settings of a package manager, unless they contain a credential', async () => {
    const commands = ['git diff', 'git log -p', 'cat $(git ls-files)']
    expect(await asked({ files: { '.npmrc': 'save-exact=true\n' }, repository: true }, commands)).toEqual([])
    const files = { '.npmrc': '//registry.example/:_authToken=x\n' }
    expect(await asked({ files, repository: true }, commands)).toEqual(commands)
  })
})
