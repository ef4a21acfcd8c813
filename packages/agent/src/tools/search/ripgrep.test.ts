import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { ripgrep } from './ripgrep.ts'

/** A search that never ends by itself: there is always more to read. */
async function endlessSearch(folder: TestFolder, signal: AbortSignal, take: (text: string) => boolean) {
  execFileSync('mkfifo', [folder.at('pipe')])
  const writer = spawn('sh', ['-c', 'exec yes hello > pipe'], { cwd: folder.path, stdio: 'ignore' })
  const ended = once(writer, 'exit')
  try {
    await using pipe = await open(folder.at('pipe'))
    return await ripgrep({
      arguments: ['--regexp=hello', '--', '-'],
      workingFolder: folder.path,
      input: pipe.fd,
      signal,
      take,
    })
  } finally {
    // It writes until there is no reader: neither this test nor a search that is still running.
    await ended
  }
}

test('an aborted search ends with its process', async () => {
  await using folder = await TestFolder.make()
  const controller = new AbortController()
  const searching = endlessSearch(folder, controller.signal, () => {
    controller.abort()
    return true
  })
  await expect(searching).rejects.toMatchObject({ name: 'AbortError' })
})

test('a search ends with its process when it has enough', async () => {
  await using folder = await TestFolder.make()
  const taken: string[] = []
  await endlessSearch(folder, new AbortController().signal, (text) => {
    taken.push(text)
    return false
  })
  expect(taken).toHaveLength(1)
})

test('a search that was aborted before does not start', async () => {
  await using folder = await TestFolder.make()
  await expect(endlessSearch(folder, AbortSignal.abort(), () => true)).rejects.toMatchObject({ name: 'AbortError' })
})

test('a missing folder is a system error', async () => {
  await using folder = await TestFolder.make()
  const search = { arguments: ['--files'], workingFolder: folder.at('gone'), take: () => true }
  await expect(ripgrep({ ...search, signal: new AbortController().signal })).rejects.toMatchObject({ code: 'ENOENT' })
})

test('its error output is returned if it found something, and thrown otherwise', async () => {
  await using folder = await TestFolder.make({ a: 'hello\n' })
  const signal = new AbortController().signal
  const search = { workingFolder: folder.path, signal, take: () => true }
  const { complaints } = await ripgrep({ ...search, arguments: ['--regexp=hello', '--', 'a', 'missing'] })
  expect(complaints).toContain('missing: No such file or directory')
  await expect(ripgrep({ ...search, arguments: ['--regexp=hello', '--', 'missing'] })).rejects.toThrow(
    /^The search failed\. missing: /,
  )
})
