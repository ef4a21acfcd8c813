import { memoryStore, SessionError, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { randomFrom } from '@tapetree/session/testing'
import { MemoryDisk } from '@tapetree/session/testing'
import { expect, onTestFinished, test } from 'vitest'
import { isWider, narrowest, permissionModes, type PermissionMode } from '../permissions/modes.ts'
import { Sandbox } from '../sandbox/sandbox.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import { onlyModel } from './model-choice.ts'

async function open(options: Partial<AgentSessionOptions> & { says?: ScriptBuilder }): Promise<AgentSession> {
  const { says = script(), store = memoryStore(), ...rest } = options
  const models = onlyModel(scriptedModel(says))
  const agent = await AgentSession.open({ models, sandbox, tools: () => [], hasSubagents: false, ...rest, store })
  onTestFinished(() => agent.close())
  return agent
}

/** Counts as working. No command runs in it. */
function sandbox(): Promise<Sandbox> {
  const support = { type: 'bubblewrap', path: '/usr/bin/bwrap', version: '0.8.0' } as const
  return Sandbox.open({ folders: ['/repo'], home: '/home/me', keep: '/keep', support })
}

/** Closes it, and opens the same session with other options. */
async function reopen(
  agent: AgentSession,
  options: Partial<AgentSessionOptions> & { store: SessionStore },
): Promise<AgentSession> {
  const { id: sessionId } = agent.session
  await agent.close()
  return open({ sessionId, ...options })
}

function onDisk(disk: MemoryDisk): SessionStore {
  return openFileStore({ folder: '/store', port: disk, lock: disk.lock })
}

test('a recorded mode is in force when the session is opened again, whatever the default is then', async () => {
  const store = memoryStore()
  for (const mode of permissionModes) {
    const agent = await open({ store })
    await agent.setMode(mode, { cmd: `set-${mode}`, client: 'me' })
    expect(agent.session.effectOf(`set-${mode}`)).toBe(agent.session.head.seq)
    for (const defaultMode of permissionModes) {
      expect((await reopen(agent, { store, defaultMode })).state().mode).toBe(mode)
    }
  }
})

test('a mode given when a session is opened wins over the recorded one, and is recorded', async () => {
  const store = memoryStore()
  const first = await open({ store, mode: 'plan' })
  expect(first.state().mode).toBe('plan')
  const second = await reopen(first, { store, defaultMode: 'auto' })
  expect(second.state().mode).toBe('plan')
  const third = await reopen(second, { store, mode: 'accept-edits' })
  expect(third.state().mode).toBe('accept-edits')
  const before = third.session.head.seq
  const fourth = await reopen(third, { store, mode: 'accept-edits' })
  expect([fourth.state().mode, fourth.session.head.seq]).toEqual(['accept-edits', before])
})

test('the mode option does not apply to a session that the agent switches to', async () => {
  const store = memoryStore()
  const agent = await open({ store, mode: 'auto' })
  const { id } = agent.session
  await agent.setMode('ask')
  await agent.newSession()
  expect(agent.state().mode).toBe('auto')
  await agent.switchSession(id)
  expect(agent.state().mode).toBe('ask')
})

test('a recorded mode is narrowed if rules may be missing, and stays so', async () => {
  const store = memoryStore()
  const first = await open({ store, mode: 'auto' })
  const second = await reopen(first, { store, maxMode: 'ask' })
  expect(second.state().mode).toBe('ask')
  expect((await reopen(second, { store, defaultMode: 'auto' })).state().mode).toBe('ask')
})

test('an unknown mode, or one whose record may be lost, becomes `ask`', async () => {
  const store = memoryStore()
  const agent = await open({ store })
  await agent.session.append({ type: 'permission_mode', permissionMode: { mode: 'everything' } })
  expect((await reopen(agent, { store, defaultMode: 'auto' })).state().mode).toBe('ask')

  const disk = new MemoryDisk()
  const damaged = await open({ store: onDisk(disk) })
  await damaged.setMode('auto')
  await damaged.setMode('plan')
  const { id: sessionId } = damaged.session
  await damaged.close()
  const path = `/store/${sessionId}/events.jsonl`
  const content = Buffer.from(disk.contentOf(path) ?? []).toString()
  const lines = content.trimEnd().split('\n')
  disk.put(path, `${[...lines.slice(0, -1), lines.at(-1)?.replace('"plan"', '"plam"')].join('\n')}\n`)
  disk.remove(`/store/${sessionId}/checkpoint.json`)
  const opened = await open({ store: onDisk(disk.afterProcessCrash()), sessionId, defaultMode: 'auto' })
  expect([opened.session.damage.length, opened.session.permissionMode, opened.state().mode]).toEqual([
    1,
    'unknown',
    'ask',
  ])
})

test('a copy of a session starts in the default mode', async () => {
  const store = memoryStore()
  const agent = await open({ store, says: script().text('Done.') })
  await agent.setMode('auto')
  const outcome = await agent.prompt('go')
  if (outcome.type === 'started') await outcome.run.done
  const leaf = agent.session.leafId as string
  const fork = await store.forkFrom(agent.session.id)
  await using unpacked = await store.unpack(store.pack(agent.session.id))
  expect([fork.permissionMode, unpacked.permissionMode]).toEqual([undefined, undefined])
  await fork.close()
  await agent.fork(leaf)
  expect(agent.state().mode).toBe('ask')
})

test('an accepted plan also ends plan mode in the log', async () => {
  const store = memoryStore()
  const says = script().toolCall('1', 'exit_plan', { plan: '1. Do it.' }).step().text('Done.')
  const agent = await open({ store, mode: 'plan', says })
  const stop = agent.session.subscribe(({ line }) => {
    if (line.type !== 'permission_request') return
    const { requestId, options } = line.permissionRequest
    const accept = options.find(({ label }) => label === 'Accept')
    void agent.answer({ requestId, outcome: 'allowed', ...(accept && { optionId: accept.optionId }) })
  })
  const outcome = await agent.prompt('plan it')
  if (outcome.type === 'started') await outcome.run.done
  stop()
  expect(agent.state().mode).toBe('ask')
  expect((await reopen(agent, { store, defaultMode: 'plan' })).state().mode).toBe('ask')
})

test('a wider mode takes effect once it is durable, a narrower one at once', async () => {
  const disk = new MemoryDisk()
  const agent = await open({ store: onDisk(disk), defaultMode: 'ask' })
  const gate = Promise.withResolvers<void>()
  const sync = disk.dataSync.bind(disk)
  disk.dataSync = async (fd) => gate.promise.then(() => sync(fd))
  const widened = agent.setMode('auto')
  expect(agent.state().mode).toBe('ask')
  const narrowed = agent.setMode('plan')
  expect(agent.state().mode).toBe('plan')
  const again = agent.setMode('accept-edits')
  expect(agent.state().mode).toBe('plan')
  gate.resolve()
  await Promise.all([widened, narrowed, again])
  expect(agent.state().mode).toBe('accept-edits')
})

test('a change that cannot be stored is reported; a narrower mode still takes effect', async () => {
  const disk = new MemoryDisk()
  const agent = await open({ store: onDisk(disk), mode: 'accept-edits' })
  const full = { operation: 'write', nth: 1, times: 100, error: 'ENOSPC' } as const
  disk.failNth(full)
  await expect(agent.setMode('auto')).rejects.toBeInstanceOf(SessionError)
  expect(agent.state().mode).toBe('accept-edits')
  await expect(agent.setMode('plan')).rejects.toBeInstanceOf(SessionError)
  expect(agent.state().mode).toBe('plan')
  disk.clearFaults()
  await agent.setMode('auto')
  expect(agent.state().mode).toBe('auto')
})

test('after any crash the mode is the last acknowledged one or a later requested one, over 100 histories', async () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  for (let index = 0; index < 100; index++) {
    const random = randomFrom(seed + index)
    const pick = (): PermissionMode => permissionModes[Math.floor(random() * permissionModes.length)] as PermissionMode
    const seen = `seed ${seed + index}`
    let disk = new MemoryDisk()
    const made = await AgentSession.open({ ...plain, store: onDisk(disk) })
    const sessionId = made.session.id
    await made.close()
    let mode: PermissionMode = 'ask'
    for (let life = 0; life < 4; life++) {
      const agent = await AgentSession.open({ ...plain, store: onDisk(disk), sessionId })
      expect({ seen, mode: agent.state().mode }).toEqual({ seen, mode })
      if (random() < 0.3) disk.failNth({ operation: 'write', nth: 1 + Math.floor(random() * 3), error: 'ENOSPC' })
      /** The last acknowledged one, then those requested later. */
      let possible = [{ mode }]
      for (let step = 0; step < 5; step++) {
        const asked = { mode: pick() }
        const before = agent.state().mode
        const done = agent.setMode(asked.mode).then(
          () => (possible = possible.slice(possible.indexOf(asked))),
          () => undefined,
        )
        possible.push(asked)
        // A requested mode never widens the mode in force before it is durable.
        const widened = isWider(agent.state().mode, narrowest(before, asked.mode))
        expect({ seen, widened }).toEqual({ seen, widened: false })
        if (random() < 0.6) await done
      }
      const after = possible.map((each) => each.mode)
      disk = random() < 0.5 ? disk.afterPowerCut() : disk.afterProcessCrash()
      await using looked = await onDisk(disk).open(sessionId, { readOnly: true })
      mode = (looked.permissionMode ?? 'ask') as PermissionMode
      expect({ seen, mode: after }).toEqual({ seen, mode: expect.arrayContaining([mode]) })
    }
  }
})

const plain = { models: onlyModel(scriptedModel(script())), sandbox, tools: () => [], hasSubagents: false }
