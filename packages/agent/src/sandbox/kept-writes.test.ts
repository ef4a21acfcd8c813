import { linkSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KeptWrites } from './kept-writes.ts'

test('a list of kept files is replaced as a whole, so that a crash never leaves half of one', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-kept-')))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [keep, cwd] = [join(folder, 'keep'), join(folder, 'work')]
  for (const each of [keep, cwd]) mkdirSync(each)
  for (const name of ['one', 'two']) writeFileSync(join(cwd, name), name)
  const kept = new KeptWrites({ keep, cwd })

  await kept.take('job', [join(cwd, 'one')])
  const list = join(keep, 'taken-back', 'job', 'moved.json')
  linkSync(list, join(folder, 'before'))
  const before = readFileSync(list, 'utf8')
  await kept.take('job', [join(cwd, 'two')])

  expect(readFileSync(join(folder, 'before'), 'utf8')).toBe(before)
  expect((await kept.list()).map(({ path }) => path)).toEqual(['one', 'two'])
})

test('a control file that cannot be moved is named, and the others and the output are not lost', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-kept-')))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [keep, cwd] = [join(folder, 'keep'), join(folder, 'work')]
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'two'), 'two')
  const kept = new KeptWrites({ keep, cwd })

  // It goes before it is moved, which is one of the reasons.
  const { writes, unmoved } = await kept.take('job', [join(cwd, 'one'), join(cwd, 'two')])

  expect(unmoved).toEqual([{ path: 'one', reason: expect.stringContaining('ENOENT') as string }])
  expect(writes).toEqual([{ id: 'job.1', path: 'two' }])
  expect((await kept.list()).map(({ path }) => path)).toEqual(['two'])
  expect(await kept.take('job', [])).toEqual({ writes, unmoved: [] })
})
