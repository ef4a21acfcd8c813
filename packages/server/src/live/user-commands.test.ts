// Commands of a user that are sent again, because the server died before it answered them.
import { allowAll, onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import type { BashExecution } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { agentSessions } from '../drivers/agent-sessions.ts'
import type { LiveSession } from './live-session.ts'
import type { LiveSessions } from './live-sessions.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 30_000 }

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const commandId = 'deploy-1'
const ledgerOf = (folder: string): string => readFileSync(join(folder, 'ledger'), 'utf8')

interface Place {
  folder: string
  id: string
  server: ChildProcess
  sessions: LiveSessions
}

/** A server that runs a command of the user, and another one that can open the session. */
async function running(command: string): Promise<Place> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'user-commands-')))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  const program = fileURLToPath(new URL('testing/command-server.ts', import.meta.url))
  const server = fork(program, [folder, commandId, command], { execArgv: ['-C', '@tapetree/source'] })
  cleanUps.push(() => server.kill('SIGKILL'))
  cleanUps.push(() => writeFileSync(join(folder, 'go'), ''))
  const [id] = (await once(server, 'message')) as [string]
  await vi.waitFor(() => expect(existsSync(join(folder, 'ledger'))).toBe(true), patiently)
  const store = openFileStore({ folder })
  const models = onlyModel(scriptedModel(script()))
  const sessions = agentSessions({ store, models, tools: () => [], gate: () => allowAll, hasSubagents: false })
  cleanUps.push(() => sessions.close())
  return { folder, id, server, sessions }
}

async function kill(server: ChildProcess): Promise<void> {
  server.kill('SIGKILL')
  await once(server, 'exit')
}

async function commandsOf({ session }: LiveSession): Promise<BashExecution[]> {
  const entries = await session.getContextPath()
  return entries.flatMap((entry) =>
    entry.type === 'message' && entry.message.bashExecution ? [entry.message.bashExecution] : [],
  )
}

/** Ends when it may, when it runs for the second time, or when the test is over. */
const command =
  'echo x >> ledger; while [ ! -e go ] && [ "$(cat ledger)" = x ]; do sleep 0.1; done 2>/dev/null; echo out; exit 3'
const sent = { op: 'bash', args: { command } }

test(
  'a command that still runs when its server was killed is not run again, and becomes a job',
  patiently,
  async () => {
    const { folder, id, server, sessions } = await running(command)
    await kill(server)
    const live = await sessions.get(id)
    expect(await live.perform(commandId, 'me', sent)).toMatchObject({ ok: true, dup: true })
    const output = expect.stringMatching(/continues in the background as job-/)
    expect(await commandsOf(live)).toEqual([{ command, output }])
    const other = { op: 'bash', args: { command: 'true' } }
    expect(await live.perform(commandId, 'me', other)).toMatchObject({ error: { type: 'key-reused' } })
    expect(ledgerOf(folder)).toBe('x\n')
  },
)

test('a command that ended after its server was killed has its real outcome', patiently, async () => {
  const { folder, id, server, sessions } = await running(command)
  await kill(server)
  writeFileSync(join(folder, 'go'), '')
  const spools = join(folder, id, 'spool')
  const hasEnded = (): boolean => readdirSync(spools).some((spool) => existsSync(join(spools, spool, 'exit')))
  await vi.waitFor(() => expect(hasEnded()).toBe(true), patiently)
  const live = await sessions.get(id)
  expect(await live.perform(commandId, 'me', sent)).toMatchObject({ ok: true, dup: true })
  expect(await commandsOf(live)).toEqual([{ command, output: 'out', exitCode: 3 }])
  expect(ledgerOf(folder)).toBe('x\n')
})

test('a server that watched the session takes it over to state the outcome', patiently, async () => {
  const { folder, id, server, sessions } = await running(command)
  const live = await sessions.get(id)
  expect(live.isWatched).toBe(true)
  expect(await live.perform(commandId, 'me', sent)).toMatchObject({ ok: true, dup: true })
  expect(await commandsOf(live)).toEqual([])
  await kill(server)
  expect(await live.perform(commandId, 'me', sent)).toMatchObject({ ok: true, dup: true })
  expect(await commandsOf(live)).toHaveLength(1)
  expect(ledgerOf(folder)).toBe('x\n')
})
