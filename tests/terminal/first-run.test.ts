import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fakeModel, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { say } from '../peers/answers.ts'
import { openChat, testHome } from './chat.ts'
import type { Terminal } from './terminal.ts'
import { startTmux } from './tmux.ts'

const key = 'fake-key-0123456789'

/** A home without a model and without a key, whose provider checks keys. */
async function newHome(): Promise<{ home: FakeHome; env: Record<string, string> }> {
  let target = ''
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(request.headers.authorization === `Bearer ${key}` ? 200 : 401).end('{"data":[]}')
      return
    }
    void (async () => {
      const body = await request.toArray().then((chunks) => Buffer.concat(chunks as Buffer[]))
      const headers = { 'content-type': 'application/json', authorization: request.headers.authorization ?? '' }
      const answer = await fetch(`${target}${request.url ?? ''}`, { method: 'POST', headers, body })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
      response.end(Buffer.from(await answer.arrayBuffer()))
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const models = [
    { id: 'model-1', contextTokens: 100_000, outputTokens: 8000, prices: { input: 1, output: 5 } },
    { id: 'model-2', contextTokens: 100_000, outputTokens: 8000, prices: { input: 3, output: 15 } },
  ]
  const fake = { api: 'openai-compatible', baseUrl, keyVariable: 'FAKE_API_KEY', models }
  const home = await testHome({ settings: { model: undefined, providers: { fake } } })
  target = home.provider.baseUrl('openaiCompatible')
  return { home, env: { FAKE_API_KEY: '' } }
}

/** A new user, whose key presses are counted. */
function counted(chat: Terminal): { press: (key: string) => void; presses: () => number } {
  let presses = 0
  return {
    press: (pressed) => {
      presses++
      if (pressed === 'enter') chat.press('enter')
      else chat.type(pressed)
    },
    presses: () => presses,
  }
}

test('from nothing to the first answer takes at most 6 key presses besides the key', async () => {
  const { home, env } = await newHome()
  await mkdir(join(home.cwd, '.tapetree'))
  await writeFile(join(home.cwd, '.tapetree', 'settings.json'), '{"systemPrompt":{"append":"Speak Latin."}}')
  await writeFile(join(home.cwd, 'README.md'), '# A project\n')
  home.provider.script(say('It is a project.'))
  const chat = await openChat({ home, env, until: 'Do you trust this repository?' })
  const user = counted(chat)
  expect(chat.screen()).toContain('Speak Latin.')
  user.press('2')
  await chat.waitFor('Welcome to tapetree')
  user.press('1')
  await chat.waitFor('paste or type; it is not shown')
  chat.paste(key)
  await chat.waitFor('•'.repeat(key.length))
  user.press('enter')
  await chat.waitFor('Which provider is the key of?')
  user.press('1')
  await chat.waitFor(/model-2 +\$3 and \$15/)
  expect(chat.screen()).toMatch(/› 1\. model-1 +\$1 and \$5/)
  user.press('enter')
  await chat.waitFor('Read README.md and explain')
  user.press('enter')
  await chat.waitFor('It is a project.')
  expect(user.presses()).toBeLessThanOrEqual(6)
  expect(chat.bytes.toString('latin1')).not.toContain(key)
  const request = await home.provider.request(1)
  expect(request.headers.authorization).toBe(`Bearer ${key}`)
  expect(JSON.stringify(request.body)).toContain('Speak Latin.')
  const settings = await readFile(join(home.env['TAPETREE_HOME'] ?? '', 'settings.json'), 'utf8')
  expect(JSON.parse(settings)).toMatchObject({ model: fakeModel })
  chat.press('ctrl-d')
  await chat.exit
  // The next start asks nothing.
  await openChat({ home, env })
})

test('a refused key can be entered again, and leaving ends with the exit code for a missing model', async () => {
  const { home, env } = await newHome()
  const chat = await openChat({ home, env, until: 'Welcome to tapetree' })
  chat.type('1')
  await chat.waitFor('paste or type; it is not shown')
  chat.paste('a-wrong-key')
  chat.press('enter')
  await chat.waitFor('Which provider is the key of?')
  chat.type('1')
  await chat.waitFor('fake does not accept the key.')
  chat.press('escape')
  await chat.waitFor('Welcome to tapetree')
  chat.press('escape')
  expect(await chat.exit).toBe(4)
})

test('sessions of other programs are offered, imported, and not offered again', async () => {
  const { home, env } = await newHome()
  const folder = join(home.home, '.pi/agent/sessions/--work--')
  await mkdir(folder, { recursive: true })
  const header = { type: 'session', version: 3, id: 's1', timestamp: '2026-11-18T20:00:00.000Z', cwd: home.cwd }
  const message = { ...header, type: 'message', id: 'a', parentId: null, message: { role: 'user', content: 'How?' } }
  await writeFile(join(folder, 'one_s1.jsonl'), `${JSON.stringify(header)}\n${JSON.stringify(message)}\n`)
  const chat = await openChat({ home, env, until: /Bring your history +1 session of pi/ })
  chat.type('2')
  await chat.waitFor('Imported 1 session.')
  await chat.waitFor(/2\. Take a tour/)
  chat.press('escape')
  expect(await chat.exit).toBe(4)
})

test('an untrusted repository is left out if the user says no', async () => {
  const home = await testHome()
  await mkdir(join(home.cwd, '.tapetree'))
  await writeFile(join(home.cwd, '.tapetree', 'settings.json'), '{"systemPrompt":{"append":"Speak Latin."}}')
  home.provider.script(say('Hello.'))
  await using tmux = await startTmux({ home })
  await tmux.waitFor('Do you trust this repository?')
  await tmux.press('enter')
  await tmux.waitFor('folder is not trusted.')
  await tmux.waitFor('model-1')
  await tmux.type('Hi')
  await tmux.press('enter')
  await tmux.waitFor('Hello.')
  expect(JSON.stringify((await home.provider.request(1)).body)).not.toContain('Latin')
})

test('a light terminal gets the light theme, unless a theme was chosen', async () => {
  const light = '38;5;25m'
  const home = await testHome()
  const chat = await openChat({ home })
  expect(chat.bytes.toString('latin1')).toContain('\u001b]11;?')
  expect(chat.bytes.toString('latin1')).not.toContain(light)
  chat.type('\u001b]11;rgb:ffff/ffff/eeee\u0007')
  await chat.waitFor(() => chat.bytes.toString('latin1').includes(light))
  expect(chat.screen()).not.toContain('rgb:')
  const chosen = await openChat({ home, args: ['--theme', 'dark'] })
  expect(chosen.bytes.toString('latin1')).not.toContain('\u001b]11;?')
})
