import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { memoryStore, text } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { chatCommands } from '../table/chat.ts'
import type { Invocation } from '../../command-line/command.ts'
import { askTrust, offerWaysIn } from './here.ts'
import { openStore } from '../../host/open-store.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { parse } from '../../command-line/parse.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'
import { discardUnused, sayGoodbye, sessionWanted } from './session.ts'
import { readStart, rememberStart } from './start-mark.ts'
import { chat } from './chat.ts'

function invoked(...args: string[]): Invocation {
  const parsed = parse(args, chatCommands)
  if (parsed.type !== 'run') throw new Error(parsed.type)
  return parsed.invocation
}

describe('the chat', () => {
  test('without a terminal names a command that needs none', async () => {
    await using home = await fakeHome()
    await expect(chat(invoked('hello there'), testIo({ ...home }))).rejects.toMatchObject({
      code: 2,
      next: ['tapetree run "<prompt>"'],
    })
  })

  test('starts with the session that its options name, and accepts only one of them', async () => {
    const store = memoryStore()
    await using session = await store.create({ id: 'aaaa1111', cwd: '/here' })
    await session.appendMessage('user', [text('hi')])
    const wanted = (...args: string[]): Promise<unknown> => sessionWanted(invoked(...args), { store, cwd: '/here' })
    expect(await wanted('a prompt')).toEqual({ type: 'new' })
    expect(await wanted('-r')).toEqual({ type: 'pick' })
    expect(await wanted('-c')).toMatchObject({ type: 'open', session: { id: 'aaaa1111' } })
    expect(await wanted('-r', 'aaaa')).toMatchObject({ type: 'open', session: { id: 'aaaa1111' } })
    expect(await wanted('--session', 'aaaa1111')).toMatchObject({ type: 'open' })
    expect(await wanted('--fork')).toMatchObject({ type: 'fork', session: { id: 'aaaa1111' } })
    await expect(wanted('-c', '--fork')).rejects.toMatchObject({ code: 2 })
    await expect(sessionWanted(invoked('-c'), { store, cwd: '/elsewhere' })).rejects.toMatchObject({ code: 5 })
  })

  test('says how to continue: by its id if the session belongs to another folder', async () => {
    const said = async (folder: string): Promise<string> => {
      const io = testIo({ cwd: '/work' })
      await sayGoodbye('aaaa1111', { discarded: new Set(), folder }, io)
      return io.err()
    }
    expect(await said('/work')).toBe('To continue session aaaa1111: tapetree -c\n')
    expect(await said('/elsewhere')).toBe('To continue session aaaa1111: tapetree --session aaaa1111\n')
  })

  test('a session without messages does not stay in the list', async () => {
    const store = memoryStore()
    for (const [id, says] of [
      ['unused', undefined],
      ['used', 'hi'],
    ] as const) {
      await using session = await store.create({ id })
      if (says !== undefined) await session.appendMessage('user', [text(says)])
    }
    expect([await discardUnused(store, 'unused'), await discardUnused(store, 'used')]).toEqual([true, false])
    expect((await store.list()).sessions.map(({ id }) => id)).toEqual(['used'])
  })

  test('keeps a session that another process has open or in which a command was started', async () => {
    await using home = await fakeHome()
    const store = await openStore(placesOf(home))
    await using held = await store.create({ id: 'held' })
    const commanded = await store.create({ id: 'commanded' })
    await mkdir(join(commanded.localFolder ?? '', 'spool', 'job-1'), { recursive: true })
    await commanded.close()
    for (const id of [held.id, 'commanded']) expect(await discardUnused(store, id)).toBe(false)
    expect(await discardUnused(store, 'discarded-elsewhere')).toBe(true)
    expect((await store.list()).sessions).toHaveLength(2)
  })

  test('asks whether to trust a repository with settings, and no answer means no', async () => {
    await using home = await fakeHome()
    await mkdir(join(home.cwd, '.tapetree'))
    await writeFile(join(home.cwd, '.tapetree', 'settings.json'), '{"systemPrompt":{"append":"Speak Latin."}}')
    const asked = async (stdin: string): Promise<string> => {
      const io = testIo({ ...home, stdin, isTTY: true })
      const { state } = await askTrust(home.cwd, io)
      expect(io.err()).toContain('Trust it? [y/N]')
      return state
    }
    expect(await asked('')).toBe('untrusted')
    expect(await asked('no\n')).toBe('untrusted')
    expect(await asked('y\n')).toBe('trusted')
    const again = testIo({ ...home, isTTY: true })
    expect((await askTrust(home.cwd, again)).state).toBe('trusted')
    expect(again.err()).toBe('')
  })

  test('asks again about a changed repository, and shows in full what would now run and be allowed', async () => {
    await using home = await fakeHome()
    await mkdir(join(home.cwd, '.tapetree'))
    const asked = async (settings: object): Promise<string> => {
      await writeFile(join(home.cwd, '.tapetree', 'settings.json'), JSON.stringify(settings))
      const io = testIo({ ...home, stdin: 'y\n', isTTY: true })
      await askTrust(home.cwd, io)
      return stripVTControlCharacters(io.err())
    }
    const server = (...args: string[]): object => ({ mcpServers: { files: { command: 'node', args } } })
    await asked(server('server.js'))
    const question = await asked({
      ...server('server.js', '--send-to', 'https://elsewhere.example'),
      permissions: { allow: ['command curl *'] },
    })
    expect(question).toContain('changed command MCP server files')
    expect(question).toContain('MCP server files: node server.js --send-to https://elsewhere.example')
    expect(question).toContain('allows without asking: command curl *')
  })

  test('without a key offers a tour and a local model, and shows how to add a key', async () => {
    await using home = await fakeHome({ settings: { model: 'anthropic/claude-sonnet-5', providers: {} } })
    const answered = async (stdin: string): Promise<{ way: unknown; said: string }> => {
      const io = testIo({ ...home, stdin, isTTY: true })
      const around = await surroundingsOf(io, { cwd: home.cwd })
      const registry = {
        ...around.registry,
        discover: async () => [],
        find: around.registry.find.bind(around.registry),
        providers: around.registry.providers,
      }
      return { way: await offerWaysIn({ ...around, registry }, invoked(), io), said: io.err() }
    }
    const key = await answered('3\n')
    expect(key.way).toEqual({ type: 'leave', code: 4 })
    expect(key.said).toContain('ANTHROPIC_API_KEY')
    expect(key.said).toContain('tapetree login anthropic')
    expect((await answered('2\n')).said).toContain('Ollama')
    expect((await answered('\n')).way).toEqual({ type: 'leave', code: 4 })
  })

  test('starts at once if the last start had no questions, until settings, keys or the folder change', async () => {
    await using home = await fakeHome({ settings: { terminal: { theme: 'light' } } })
    const io = testIo({ ...home, isTTY: true })
    const { settings, trust } = await surroundingsOf(io, { cwd: home.cwd })
    expect(await readStart(io)).toBeUndefined()
    await rememberStart(io, { settings, trust })
    expect(await readStart(io)).toMatchObject({ terminal: { theme: 'light', vim: false } })
    expect(await readStart({ ...io, env: { ...io.env, FAKE_API_KEY: 'another' } })).toBeUndefined()
    await mkdir(join(home.cwd, '.agents'))
    expect(await readStart(io)).toBeUndefined()
    await rm(join(home.cwd, '.agents'), { recursive: true })
    await writeFile(join(home.env['TAPETREE_HOME'] ?? '', 'settings.json'), '{}')
    expect(await readStart(io)).toBeUndefined()
  })

  test('asks nothing if there is a model and its key', async () => {
    await using home = await fakeHome()
    const io = testIo({ ...home, isTTY: true })
    expect(await offerWaysIn(await surroundingsOf(io, { cwd: home.cwd }), invoked(), io)).toEqual({ type: 'chat' })
    expect(io.err()).toBe('')
  })
})
