import { join } from 'node:path'
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

const secretSettings = {
  permissions: { mode: 'plan', allow: [{ type: 'command', match: 'npm test' }] },
  mcpServers: {
    tracker: { type: 'http', url: 'https://tracker.example/mcp', headers: { authorization: 'hush-hush' } },
    notes: {
      command: 'serve',
      args: ['--api-key', 'hush-hush', '--token=hush-hush', '--port', '80', 'DB_PASSWORD=hush-hush'],
    },
  },
}

test('every setting is shown with its value and origin, and without secrets', async () => {
  await using home = await fakeHome({ settings: secretSettings })
  const io = testIo({ ...home, env: { ...home.env, TAPETREE_RETRY_MAX_RETRIES: '7' } })
  expect(await runCli(['config', 'show', '--origin'], io)).toBe(exitCodes.ok)
  const file = join(String(home.env['TAPETREE_HOME']), 'settings.json')
  expect(io.out()).toMatch(new RegExp(`^permissions\\.mode +"plan" +${file}:\\d+$`, 'm'))
  expect(io.out()).toMatch(/^permissions\.allow +\[\{"type":"command","match":"npm test"\}\] +user$/m)
  expect(io.out()).toMatch(/^retry\.maxRetries +7 +TAPETREE_RETRY_MAX_RETRIES$/m)
  expect(io.out()).toMatch(/^steerPolicy +"skip-remaining" +default$/m)
  expect(io.out()).toMatch(/^mcpServers\.tracker +.*"authorization":"\[hidden\]"/m)
  expect(io.out()).toContain('"args":["--api-key","[hidden]","--token=[hidden]","--port","80","DB_PASSWORD=[hidden]"]')
  expect(io.out()).not.toContain('hush-hush')
})

test('problems are reported with file and line, the rest is shown, and the exit code is 3', async () => {
  await using home = await fakeHome()
  const file = join(String(home.env['TAPETREE_HOME']), 'settings.json')
  await writeFile(file, '{\n  "permissions": {\n    "mode": "yolo"\n  }\n}\n')
  const io = testIo(home)
  expect(await runCli(['config', 'show'], io)).toBe(exitCodes.configuration)
  expect(io.err()).toContain(`${file}, line 3`)
  expect(io.out()).toMatch(/^permissions\.mode +"ask"$/m)
})

test('all file locations are shown', async () => {
  await using home = await fakeHome()
  const io = testIo(home)
  expect(await runCli(['config', 'path', '--json'], io)).toBe(exitCodes.ok)
  const root = String(home.env['TAPETREE_HOME'])
  expect(JSON.parse(io.out())).toMatchObject({
    settings: join(root, 'settings.json'),
    sessions: join(root, 'sessions'),
  })
})
