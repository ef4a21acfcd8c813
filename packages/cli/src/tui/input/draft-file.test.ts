import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DraftFile } from './draft-file.ts'

async function temporary(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-drafts-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** The id of a process that has ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ['--version']).pid
}

test('a draft of a process that is gone comes back once, in its folder, and those of live processes stay', async () => {
  const folder = await temporary()
  const write = (pid: number, cwd: string, text: string, writtenAt = 1): Promise<void> =>
    writeFile(join(folder, `${pid}.json`), JSON.stringify({ pid, cwd, text, writtenAt }))
  const [dead, older] = [deadPid(), deadPid()]
  await write(dead, '/work', 'unsent')
  await write(older, '/work', 'older', 0)
  await write(process.ppid, '/work', 'of another terminal', 2)
  await writeFile(join(folder, 'torn.json'), '{"pid":')
  expect(new DraftFile({ folder, cwd: '/elsewhere' }).take()).toBe('')
  const draft = new DraftFile({ folder, cwd: '/work' })
  expect(draft.take()).toBe('unsent')
  expect((await readdir(folder)).toSorted()).toEqual(
    [`${process.pid}.json`, `${process.ppid}.json`, 'torn.json'].toSorted(),
  )
  expect(JSON.parse(await readFile(join(folder, `${process.pid}.json`), 'utf8'))).toMatchObject({ text: 'unsent' })
  draft.keep('')
  draft.flush()
  expect(existsSync(join(folder, `${process.pid}.json`))).toBe(false)
})
