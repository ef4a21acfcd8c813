import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keys, startChat } from '../testing/chat-driver.ts'
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

test('a draft that an earlier process with this id left comes back', async () => {
  const folder = await temporary()
  const earlier = new DraftFile({ folder, cwd: '/work' })
  earlier.keep('unsent')
  earlier.flush()
  for (const _start of [1, 2]) expect(new DraftFile({ folder, cwd: '/work' }).take()).toBe('unsent')
})

test('a message that was never acknowledged is a draft in the next chat', async () => {
  const historyFile = join(await temporary(), 'history.jsonl')
  const leaving = new AbortController()
  const { terminal, handle, ended } = startChat({ historyFile, signal: leaving.signal })
  handle.reply = () => new Promise(() => undefined)
  await terminal.waitFor('Enter sends')
  terminal.type('on its way')
  terminal.press(keys.enter)
  terminal.type('half a thought')
  await terminal.waitFor('half a thought')
  leaving.abort()
  await ended
  {
    await using next = startChat({ historyFile })
    await next.terminal.waitFor(/on its way\s+half a thought/)
    next.terminal.press(keys.enter)
    await next.terminal.waitFor((screen) => !screen.includes('half a thought'))
  }
  await using last = startChat({ historyFile })
  await last.terminal.waitFor('Enter sends')
  expect(last.terminal.screen().join()).not.toContain('half a thought')
})
