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

test('concurrent changes are not lost', async () => {
  const path = join(await emptyFolder(), 'numbers')
  await replaceFile(path, '')
  const add = (number: number): Promise<void> =>
    withFileLock(path, async () => replaceFile(path, `${await readFile(path, 'utf8')}${number}\n`))
  await Promise.all(Array.from({ length: 20 }, (_, index) => add(index)))
  const numbers = (await readFile(path, 'utf8')).trimEnd().split('\n').map(Number)
  expect(numbers.sort((left, right) => left - right)).toEqual(Array.from({ length: 20 }, (_, index) => index))
})

test('work that fails releases the lock', async () => {
  const path = join(await emptyFolder(), 'a')
  await expect(withFileLock(path, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  expect(await withFileLock(path, () => Promise.resolve('done'))).toBe('done')
})

test('locking fails in a read-only folder', async () => {
  await expect(withFileLock(join(await emptyFolder(), 'none', 'a'), () => Promise.resolve())).rejects.toThrow(
    'No kernel lock',
  )
})

test('a lock that is held too long fails with a timeout', async () => {
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
