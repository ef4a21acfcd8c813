import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeUserSettings } from '@tapetree/agent/settings'
import { chatServices } from '../commands/chat/services.ts'
import { testIo } from '../testing/test-io.ts'
import { placesOf } from './places.ts'
import { fakeHome, fakeModel } from '../testing/fake-home.ts'
import { localSource, offeredModels, listFiles } from './local-source.ts'
import { openStore } from './open-store.ts'
import { SessionHost } from './session-host.ts'
import { surroundingsOf } from './surroundings.ts'

test('local sessions are created, listed, searched, forked and shown as a tree', async () => {
  await using home = await fakeHome()
  const store = await openStore(placesOf(home))
  const host = await SessionHost.open({ io: home, store, owner: 'terminal' })
  const { registry } = await surroundingsOf(home, { cwd: home.cwd })
  const source = localSource({ host, store, cwd: home.cwd, models: () => offeredModels(registry) })

  const { handle, access, cwd } = await source.create()
  expect([access.type, cwd]).toEqual(['owner', home.cwd])
  home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['A porcupine.'] }] })
  await handle.prompt('Which animal?')
  await new Promise<void>((resolve) => {
    handle.subscribe(() => {
      if (handle.transcript.run === null && [...handle.transcript.path.items].at(-1)?.type === 'assistant') resolve()
    })
  })
  expect((await source.list({ cwd: home.cwd })).map(({ id }) => id)).toEqual([handle.sessionId])
  expect(await source.search('porcupine')).toMatchObject([{ sessionId: handle.sessionId, role: 'assistant' }])

  const [root] = await source.tree(handle.sessionId)
  expect(root?.entry.parentId).toBeNull()
  const user = [...handle.transcript.path.items].find(({ type }) => type === 'user')
  const fork = await source.fork(handle.sessionId, user?.id)
  expect(fork.cwd).toBe(home.cwd)
  expect([...fork.handle.transcript.path.items].some(({ type }) => type === 'assistant')).toBe(false)

  const models = await source.models()
  expect(models.find(({ reference }) => reference === fakeModel)).toMatchObject({ provider: 'fake', isUsable: true })
  expect(models.some(({ isUsable }) => !isUsable)).toBe(true)

  const image = await source.keepImage(handle.sessionId, { bytes: Buffer.from('bytes'), mediaType: 'image/png' })
  await using reading = await store.open(handle.sessionId, { readOnly: true })
  expect(Buffer.from(await reading.getBlob(image)).toString()).toBe('bytes')
  await source.close()
  await store.close()
})

test('other sessions are renamed, archived and deleted, unless they are in use', async () => {
  await using home = await fakeHome()
  const store = await openStore(placesOf(home))
  const host = await SessionHost.open({ io: home, store, owner: 'terminal' })
  const source = localSource({ host, store, cwd: home.cwd, models: async () => [] })
  const [shown, left, old] = [await source.create(), await source.create(), await source.create()].map(
    ({ handle }) => handle,
  )
  await left?.close()
  await old?.close()
  const idOf = (handle: typeof shown): string => handle?.sessionId ?? ''
  await source.rename(idOf(left), 'left')
  expect((await source.list({})).find(({ id }) => id === left?.sessionId)?.name).toBe('left')
  await expect(source.delete(idOf(shown))).rejects.toMatchObject({ code: 'session-busy' })
  await source.archive(idOf(left))
  await source.delete(idOf(old))
  expect((await source.list({})).map(({ id }) => id)).toEqual([shown?.sessionId])
  expect((await source.list({ place: 'archive' })).map(({ id }) => id)).toEqual([left?.sessionId])
  expect((await source.list({ place: 'trash' })).map(({ id }) => id)).toEqual([old?.sessionId])
  await source.close()
  await store.close()
})

test('files match by start of path or name, substring, or letters in order', async () => {
  await using home = await fakeHome()
  for (const folder of ['src/parts', 'node_modules/parts', '.hidden'])
    await mkdir(join(home.cwd, folder), { recursive: true })
  for (const file of ['src/parts/engine.ts', 'readme.md', 'node_modules/parts/engine.ts', '.hidden/engine.ts']) {
    await writeFile(join(home.cwd, file), '')
  }
  const store = await openStore(placesOf(home))
  const host = await SessionHost.open({ io: home, store, owner: 'terminal' })
  const source = localSource({ host, store, cwd: home.cwd, models: async () => [] })
  expect(await source.files('')).toEqual(['src/', 'readme.md', 'src/parts/', 'src/parts/engine.ts'])
  expect(await source.files('eng')).toEqual(['src/parts/engine.ts'])
  expect(await source.files('src/p')).toEqual(['src/parts/', 'src/parts/engine.ts'])
  expect(await source.files('spet')).toEqual(['src/parts/engine.ts'])
  expect(await source.files('.hid')).toEqual(['.hidden/', '.hidden/engine.ts'])
  expect(await source.files('nothing')).toEqual([])
  await source.close()
  await store.close()
})

test('a session of another folder is shown with the files and settings of that folder', async () => {
  await using home = await fakeHome()
  const other = join(home.cwd, 'other')
  await mkdir(other)
  await writeFile(join(other, 'elsewhere.md'), '')
  const store = await openStore(placesOf(home))
  const host = await SessionHost.open({ io: home, store, owner: 'terminal' })
  const source = localSource({ host, store, cwd: home.cwd, models: async () => [] })
  const services = chatServices({ io: testIo(home), store, host, source })
  const settingsIn = async (folder: string): Promise<unknown> =>
    (await surroundingsOf(home, { cwd: folder })).settings.values.thinkingLevel
  await changeUserSettings({ thinkingLevel: 'low' }, { ...home, project: home.cwd })
  await source.create()
  expect(await source.files('elsewhere')).toEqual(['other/elsewhere.md'])
  const session = await store.create({ cwd: other })
  await session.close()
  await source.open(session.id)
  expect(await source.files('elsewhere')).toEqual(['elsewhere.md'])
  await services.remember({ thinkingLevel: 'high' }, 'project')
  expect([await settingsIn(home.cwd), await settingsIn(other)]).toEqual(['low', 'high'])
  await source.close()
  await store.close()
})

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
