import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { checkCommandLimits, checkSandbox } from '../../setup/doctor-checks.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

interface Told {
  ok: boolean
  checks: { name: string; status: string; says: string; fix?: string; can_mend: boolean }[]
  mended: string[]
}

async function doctor(home: FakeHome, ...args: string[]): Promise<Told & { code: ExitCode }> {
  const io = testIo(home)
  const code = await runCli(['doctor', '--json', ...args], io)
  return { code, ...(JSON.parse(io.out()) as Told) }
}

test('on a healthy machine every check passes, and no key is shown', async () => {
  await using home = await fakeHome()
  const { code, checks } = await doctor(home)
  expect(code).toBe(exitCodes.ok)
  expect(checks.filter(({ status }) => status !== 'ok')).toEqual([])
  const names = [
    'version',
    'disk',
    'lock',
    'search',
    'ripgrep',
    'sandbox',
    'command limits',
    'settings',
    'keys',
    'model',
    'index',
    'sessions',
    'sockets',
  ]
  expect(checks.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
  expect(JSON.stringify(checks)).not.toContain('no-secret')
})

test('without a sandbox, the check says how commands are treated and prints the repair', async () => {
  const repair = 'Save this as /etc/apparmor.d/bwrap and run: systemctl reload apparmor'
  const support = { type: 'none' as const, reason: 'AppArmor does not let bubblewrap create user namespaces.', repair }
  const check = await checkSandbox(() => Promise.resolve(support))
  expect(check).toEqual({
    name: 'sandbox',
    status: 'warning',
    says: `Commands cannot run in a sandbox, so the default mode is ask. ${support.reason}`,
    fix: repair,
  })
})

test('limits of commands that nothing enforces here are reported', async () => {
  const problem = 'The processes of commands cannot be limited.'
  expect(await checkCommandLimits(() => problem)).toEqual({ name: 'command limits', status: 'warning', says: problem })
  expect(await checkCommandLimits(() => undefined)).toMatchObject({ name: 'command limits', status: 'ok' })
})

test('open file modes, a stale socket and a broken index are found, and --fix fixes them', async () => {
  await using home = await fakeHome()
  const root = String(home.env['TAPETREE_HOME'])
  const sessions = join(root, 'sessions')
  await mkdir(sessions, { mode: 0o700 })
  await chmod(root, 0o755)
  for (const name of ['credentials.json', 'servers.json']) await writeFile(join(root, name), '{}', { mode: 0o644 })
  const tls = join(placesOf(home).state, 'tls')
  await mkdir(tls, { recursive: true, mode: 0o700 })
  await writeFile(join(tls, 'self-signed.pem'), '', { mode: 0o640 })
  await writeFile(join(sessions, 'index-0.sqlite'), 'this is no database, whatever it is called')
  await leaveSocket(join(String(home.env['XDG_RUNTIME_DIR']), 'tapetree', '1-abc.sock'))

  const before = await doctor(home)
  expect(before.code).toBe(exitCodes.configuration)
  const wrong = before.checks.filter(({ status }) => status !== 'ok')
  expect(wrong.map(({ name, status, can_mend }) => [name, status, can_mend])).toEqual([
    ['settings folder', 'warning', true],
    ['sockets folder', 'warning', true], // it is the same one here
    ['private files', 'failed', true],
    ['private files', 'failed', true],
    ['private files', 'failed', true],
    ['index', 'warning', true],
    ['sockets', 'warning', true],
  ])
  const after = await doctor(home, '--fix')
  expect(after.code).toBe(exitCodes.ok)
  expect(after.mended).toHaveLength(7)
  expect(after.checks.filter(({ status }) => status !== 'ok')).toEqual([])
  expect((await stat(join(root, 'credentials.json'))).mode & 0o777).toBe(0o600)
})

test('invalid settings and a damaged session are reported, with a helpful command', async () => {
  await using home = await fakeHome({ settings: { thinkingLevel: 'enormous' } })
  const session = join(String(home.env['TAPETREE_HOME']), 'sessions', '01K00000000000000000000000')
  await mkdir(session, { recursive: true, mode: 0o700 })
  await writeFile(join(session, 'events.jsonl'), 'this is no line of a log\nnor is this\n')
  const io = testIo(home)
  expect(await runCli(['doctor'], io)).toBe(exitCodes.configuration)
  expect(io.out()).toMatch(/^failed {3}settings: .*settings\.json, line \d+.*\n +tapetree config show --origin$/m)
  expect(io.out()).toMatch(/^warning {2}sessions: 1 of 1 are damaged.*\n +tapetree log verify 01K0+$/m)
})

/** The socket of a killed process. */
async function leaveSocket(path: string): Promise<void> {
  const program = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listening'))`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'close')
}
