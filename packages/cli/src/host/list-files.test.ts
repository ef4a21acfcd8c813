import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fakeHome } from '../testing/fake-home.ts'
import { listFiles } from './list-files.ts'

test('files that git ignores are skipped; without ripgrep, generated folders are skipped', async () => {
  await using home = await fakeHome()
  const { cwd } = home
  for (const folder of ['.git', 'src/deep', 'build', 'node_modules'])
    await mkdir(join(cwd, folder), { recursive: true })
  for (const file of ['.git/HEAD', 'src/deep/a.ts', 'build/a.js', 'node_modules/b.js', '.env', 'own.log']) {
    await writeFile(join(cwd, file), '')
  }
  await writeFile(join(cwd, '.gitignore'), 'build/\n*.log\n')
  const expected = ['.env', '.gitignore', 'src/', 'src/deep/', 'src/deep/a.ts']
  expect((await listFiles(cwd)).sort()).toEqual(expected)
  const walked = await listFiles(cwd, { ripgrep: join(cwd, 'nowhere') })
  expect(walked.sort()).toEqual([...expected, 'build/', 'build/a.js', 'own.log'].sort())
  expect(await listFiles(join(cwd, 'missing'))).toEqual([])
})
