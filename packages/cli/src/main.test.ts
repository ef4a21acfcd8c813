import type { FakeAnswer } from '@tapetree/agent/testing'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { exitCodes } from './command-line/exit-code.ts'
import { bundle, runBundle } from './testing/bundled-command.ts'
import { fakeHome } from './testing/fake-home.ts'
import { version } from './command-line/version.ts'

test('the bundle works alone: commands, searches, pages and extensions find their programs and threads beside it', async () => {
  await using pages = await servePage('<h1>From the page</h1>')
  await using home = await fakeHome({
    settings: { permissions: { mode: 'auto' }, web: { allowPrivateAddresses: true }, extensions: ['./note.mjs'] },
  })
  const config = String(home.env['TAPETREE_HOME'])
  await writeFile(join(config, 'note.mjs'), extension)
  await writeFile(join(home.cwd, 'notes.txt'), 'a needle in a haystack\n')
  home.provider.script(
    call('bash', { command: 'echo from-bash' }),
    call('grep', { pattern: 'needle' }),
    call('fetch', { url: pages.url }),
    { type: 'answer', content: [{ type: 'text', chunks: ['All done.'] }] },
  )
  const { code, stdout, stderr } = await runBundle(home, ['run', 'Look around'])
  expect({ code, stdout, stderr }).toMatchObject({ code: exitCodes.ok, stdout: 'All done.\n' })
  const sent = JSON.stringify(home.provider.requests.at(-1)?.body)
  for (const result of ['from-bash', 'a needle in a haystack', '# From the page', 'from-the-extension']) {
    expect(sent).toContain(result)
  }
  expect((await stat(config)).mode & 0o777).toBe(0o700)
})

const extension = `export default (api) => {
  const note = { role: 'custom', content: [{ type: 'text', text: { content: 'from-the-extension' } }] }
  api.on('context', ({ messages }) => ({ messages: [...messages, note] }))
}
`

function call(name: string, input: object): FakeAnswer {
  return { type: 'answer', content: [{ type: 'tool_call', id: `call-${name}`, name, chunks: [JSON.stringify(input)] }] }
}

async function servePage(html: string): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: async () => void server.close() }
}

test('the version is printed, a usage error has its exit code, and a closed pipe is not an error', async () => {
  await using home = await fakeHome()
  expect(await runBundle(home, ['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  expect(await runBundle(home, ['docter'])).toMatchObject({ code: exitCodes.usage, stdout: '' })
  const child = spawn(process.execPath, [bundle, 'man'], { ...home, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  const [[code], stderr] = await Promise.all([once(child, 'close'), text(child.stderr)])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test('an interruption ends a command with 130', async () => {
  await using home = await fakeHome()
  const child = spawn(process.execPath, [bundle, 'tour'], {
    cwd: home.cwd,
    env: home.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await once(child.stdout, 'data')
  child.kill('SIGINT')
  const [code] = (await once(child, 'close')) as [number | null]
  expect(code).toBe(exitCodes.interrupted)
})
