import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { afterKeys } from './login.ts'
import { keyringFor } from '../../host/surroundings.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

function withoutVariable({ env, ...home }: FakeHome): Pick<FakeHome, 'cwd' | 'home' | 'env'> {
  const { FAKE_API_KEY: _, ...rest } = env
  return { ...home, env: rest }
}

test('a key from standard input is stored in a private file, found, and removed again', async () => {
  await using home = await fakeHome()
  const place = withoutVariable(home)
  const kept = testIo({ ...place, stdin: '  key-of-mine\n' })
  expect(await runCli(['login', 'fake'], kept)).toBe(exitCodes.ok)
  const file = join(String(home.env['TAPETREE_HOME']), 'credentials.json')
  expect(kept.out()).toContain(`is stored in ${file}, which only you can read.`)
  expect(kept.out() + kept.err()).not.toContain('key-of-mine')
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ fake: 'key-of-mine' })
  expect((await stat(file)).mode & 0o777).toBe(0o600)

  const models = testIo(place)
  await runCli(['models', '--provider', 'fake'], models)
  expect(models.out()).toContain(`from the file ${file}`)

  expect(await runCli(['login', 'fake', '--remove'], testIo(place))).toBe(exitCodes.ok)
  const again = testIo(place)
  expect(await runCli(['login', 'fake', '--remove', '--json'], again)).toBe(exitCodes.notFound)
  expect(JSON.parse(again.err())).toMatchObject({ error: { type: 'no-key', message: 'No key is stored for fake.' } })
})

test('folders for everything share no keys: with TAPETREE_HOME, the system keyring is not used', () => {
  expect(keyringFor({ TAPETREE_HOME: '/somewhere' })).toEqual({})
  expect(keyringFor({}).keyring).toBeDefined()
})

test('a key is checked only on request, and a rejected key is not stored', async () => {
  await using home = await fakeHome()
  const place = withoutVariable(home)
  const settings = join(String(home.env['TAPETREE_HOME']), 'settings.json')
  const { providers } = JSON.parse(await readFile(settings, 'utf8')) as { providers: { fake: { baseUrl: string } } }
  providers.fake.baseUrl = 'http://127.0.0.1:9/v1'
  await writeFile(settings, JSON.stringify({ providers }))
  const io = testIo({ ...place, stdin: 'key' })
  expect(await runCli(['login', 'fake', '--check'], io)).toBe(exitCodes.noModel)
  expect(io.err()).toContain('The key was not stored.\nWithout --check the key is stored unchecked.')
})

test('an unknown provider and an empty key are errors', async () => {
  await using home = await fakeHome()
  const unknown = testIo(home)
  expect(await runCli(['login', 'opneai'], unknown)).toBe(exitCodes.noModel)
  expect(unknown.err()).toContain('Did you mean openai?')
  const empty = testIo({ ...home, stdin: '\n' })
  expect(await runCli(['login', 'fake'], empty)).toBe(exitCodes.usage)
})

test('on a terminal the key is read without echo', async () => {
  await using home = await fakeHome()
  const raw: string[] = []
  const kept = testIo({ ...withoutVariable(home), isTTY: true })
  const setRawMode = (isRaw: boolean): void => void raw.push(`${isRaw} after ${JSON.stringify(kept.err())}`)
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode })
  const io = { ...kept, stdin }
  stdin.write('\u001b[200~key-of\u001b[201~-minx\u007f')
  stdin.write('e\r')
  expect(await runCli(['login', 'fake'], io)).toBe(exitCodes.ok)
  expect(raw).toEqual(['true after ""', 'false after "Key for fake (hidden): "'])
  expect(io.err()).toBe('Key for fake (hidden): \n')
  const file = join(String(home.env['TAPETREE_HOME']), 'credentials.json')
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ fake: 'key-of-mine' })
})

test('special keys are not part of a key, even if they arrive in pieces', () => {
  const typed = (...chunks: string[]): ReturnType<typeof afterKeys> => {
    let typing: ReturnType<typeof afterKeys> = { type: 'typing', text: '', begun: '' }
    for (const chunk of chunks) typing = afterKeys(typing, chunk)
    return typing
  }
  expect(typed('ab', '\u0003')).toMatchObject({ type: 'stopped', text: '' })
  expect(typed('a\u001b[D\u001b[1;5C\u001bOPb\u001bx\r')).toMatchObject({ type: 'done', text: 'ab' })
  expect(typed('a\u001b[20', '0~b\u001b', '[201~', 'c\r')).toMatchObject({ type: 'done', text: 'abc' })
  expect(typed('\u001b]11;rgb:0000/0000/0000\u001b\\a\r')).toMatchObject({ type: 'done', text: 'a' })
  expect(typed('\u001b[', '\u0003')).toMatchObject({ type: 'stopped' })
})
