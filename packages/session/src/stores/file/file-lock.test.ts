import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { replaceFile } from '../../util/replace-file.ts'
import { FileLockedError, withFileLock } from './file-lock.ts'

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-lock-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

test('of many changes at once none is lost', async () => {
  const path = join(await emptyFolder(), 'numbers')
  await replaceFile(path, '')
  const add = (number: number): Promise<void> =>
    withFileLock(path, async () => replaceFile(path, `${await readFile(path, 'utf8')}${number}\n`))
  await Promise.all(Array.from({ length: 20 }, (_, index) => add(index)))
  const numbers = (await readFile(path, 'utf8')).trimEnd().split('\n').map(Number)
  expect(numbers.sort((left, right) => left - right)).toEqual(Array.from({ length: 20 }, (_, index) => index))
})

test('work that fails gives the lock back', async () => {
  const path = join(await emptyFolder(), 'a')
  await expect(withFileLock(path, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  expect(await withFileLock(path, () => Promise.resolve('done'))).toBe('done')
})

test('a folder that cannot be written to has no lock', async () => {
  await expect(withFileLock(join(await emptyFolder(), 'none', 'a'), () => Promise.resolve())).rejects.toThrow(
    'No kernel lock',
  )
})

test('a lock that is held for too long is given up', async () => {
  const path = join(await emptyFolder(), 'a')
  await withFileLock(path, async () => {
    const now = Date.now()
    const hurry = vi
      .spyOn(Date, 'now')
      .mockReturnValueOnce(now)
      .mockReturnValue(now + 60_000)
    await expect(withFileLock(path, () => Promise.resolve())).rejects.toThrow(FileLockedError)
    hurry.mockRestore()
  })
})
