import { memoryStore } from '@tapetree/session'
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { storeInside } from './store-inside.ts'

let folder: string
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'inside-')))
  for (const name of ['root/deep', 'root-too', 'outside/deep']) await mkdir(join(folder, name), { recursive: true })
  await symlink(join(folder, 'outside'), join(folder, 'root/out'))
  await symlink(join(folder, 'outside/gone'), join(folder, 'root/dangling'))
  await symlink(join(folder, 'root/deep'), join(folder, 'way-in'))
  await symlink(join(folder, 'root'), join(folder, 'alias'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Names of the visible sessions, each named after its folder. */
async function seen(
  roots: readonly string[],
  folders: readonly (string | undefined)[],
): Promise<(string | undefined)[]> {
  const store = memoryStore()
  for (const cwd of folders) {
    const session = await store.create(cwd === undefined ? {} : { cwd: cwd.startsWith('.') ? cwd : `${folder}/${cwd}` })
    await session.close()
  }
  const { sessions } = await storeInside(
    store,
    roots.map((root) => join(folder, root)),
  ).list()
  const names = sessions.map(({ cwd }) => cwd?.slice(folder.length + 1))
  return folders.filter((cwd) => names.includes(cwd))
}

test('a session is inside if its folder is, or was', async () => {
  const inside = [
    'root',
    'root/deep',
    'root/deep/gone',
    'root/gone/and/gone',
    'way-in',
    'root/../root/deep',
    'root/deep/',
  ]
  const outside = ['', 'outside', 'root-too', 'root/..', 'root/../outside', 'gone', 'gone/root', undefined, './root']
  expect(await seen(['root'], [...inside, ...outside])).toEqual(inside)
})

test('a link inside that leads out is outside, also below it and if it dangles', async () => {
  const outside = [
    'out',
    'out/deep',
    'out/gone',
    'out/..',
    'out/../outside',
    'dangling',
    'dangling/deep',
    'gone/../../root',
  ].map((name) => `root/${name}`)
  expect(await seen(['root'], outside)).toEqual([])
})

test('a root that is a link is resolved, and several roots all count', async () => {
  expect(await seen(['alias', 'root-too'], ['root/deep', 'alias/deep', 'root-too', 'outside'])).toEqual([
    'root/deep',
    'alias/deep',
    'root-too',
  ])
})
