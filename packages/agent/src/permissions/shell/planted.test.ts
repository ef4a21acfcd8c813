import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { TestFolder } from '../../testing/test-folder.ts'
import { permissionModes } from '../modes.ts'
import { noRules, ruleSchema } from '../rules.ts'
import { judgeCommand } from './judge-command.ts'

/** Commands that are harmless in an empty folder and do harm in a folder that somebody prepared. Paths are relative to the repository. */
const caseSchema = z.strictObject({
  about: z.string(),
  links: z.record(z.string(), z.string()).default({}),
  files: z.record(z.string(), z.string()).default({}),
  /** Commits everything, `.env` too. */
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

describe('a command does not pass in a folder with', () => {
  test.each(cases)('$about', async (each) => {
    await using home = await plant(each)
    const cwd = home.at('repo')
    const policy = { mode: each.mode, rules: { ...noRules, user: each.rules }, cwd, home: home.path }
    const passed = each.commands.filter((command) => judgeCommand(command, { cwd, policy }).effect === 'allow')
    expect(passed).toEqual([])
  })
})
