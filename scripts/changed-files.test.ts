import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changedFiles } from './changed-files.ts'

test('changes are found against the first base that exists, and are unknown without one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tapetree-changed-'))
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: folder, encoding: 'utf8' })
  const commit = (name: string): void => {
    writeFileSync(join(folder, name), name)
    git('add', '--all')
    git('-c', 'user.name=test', '-c', 'user.email=test@localhost', 'commit', '--quiet', '--message', name)
  }
  try {
    git('init', '--quiet', '--initial-branch=main')
    commit('first')
    expect(changedFiles({ folder, bases: ['origin/main', 'HEAD^'] })).toBeUndefined()
    commit('second')
    expect(changedFiles({ folder, bases: ['origin/main', 'HEAD^'] })).toEqual(['second'])
    git('branch', 'left')
    commit('third')
    commit('fourth')
    git('switch', '--quiet', 'left')
    commit('fifth')
    writeFileSync(join(folder, 'untracked'), '')
    writeFileSync(join(folder, 'first'), 'changed')
    rmSync(join(folder, 'second'))
    expect(changedFiles({ folder, bases: ['main'] })).toEqual(['fifth', 'first', 'second', 'untracked'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
