import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { TakenBack } from '../tools/commands/command.ts'
import { KeptWrites } from './kept-writes.ts'
import { rememberControls, takeBackControls } from './new-controls.ts'
import { surveyFolders } from './survey.ts'

let folder: string
let work: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-controls-')))
  work = join(folder, 'work')
  mkdirSync(work)
})
afterEach(() => rmSync(folder, { recursive: true }))

/** What is taken back after a command. */
async function after(command: () => void, folders = [work]): Promise<TakenBack | undefined> {
  const spool = join(folder, 'spool')
  const survey = (): ReturnType<typeof surveyFolders> => surveyFolders(folders)
  await rememberControls(spool, await survey())
  command()
  return takeBackControls({ spool, survey, kept: new KeptWrites({ keep: join(folder, 'keep'), cwd: work }) })
}

const pathsOf = (taken: TakenBack | undefined): string[] | undefined => taken?.writes.map(({ path }) => path)

test('a command that makes the working folder a bare repository has only `HEAD` taken back, and the folder stays', async () => {
  mkdirSync(join(work, 'config'))
  const made = await after(() => {
    mkdirSync(join(work, 'refs'))
    writeFileSync(join(work, 'HEAD'), 'ref: refs/heads/main\n')
    writeFileSync(join(work, '.envrc'), 'true')
  })
  expect(pathsOf(made)).toEqual(['.envrc', 'HEAD'])
  expect(existsSync(join(work, 'config'))).toBe(true)
})

test('a folder with a working folder in it is not moved either', async () => {
  const inner = join(work, 'a/b')
  mkdirSync(inner, { recursive: true })
  const taken = await after(() => execFileSync('git', ['init', '-q', '--bare', join(work, 'a')]), [work, inner])
  expect(pathsOf(taken)).toEqual(['a/HEAD'])
  expect(existsSync(inner)).toBe(true)
})

test('new hooks of a working folder that was a bare repository before are taken back', async () => {
  execFileSync('git', ['init', '-q', '--bare', '--template=', work])
  expect(pathsOf(await after(() => mkdirSync(join(work, 'hooks'))))).toEqual(['hooks'])
})

test('control files in a read-only folder and below an odd name are taken back', async () => {
  const closed = join(work, 'closed/.vscode')
  const odd = join(work, 'a -> b')
  const taken = await after(() => {
    mkdirSync(closed, { recursive: true })
    mkdirSync(odd)
    writeFileSync(join(odd, '.envrc'), 'true')
    for (const each of [closed, join(work, 'closed')]) chmodSync(each, 0o555)
  })
  expect(pathsOf(taken)?.toSorted()).toEqual(['a -> b/.envrc', 'closed/.vscode'])
  expect([closed, join(odd, '.envrc')].filter((path) => existsSync(path))).toEqual([])
})
