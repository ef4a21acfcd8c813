import { ProblemError, type SessionHandle } from '@tapetree/client'
import type { SessionStore } from '@tapetree/session'
import { chmod, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { placesOf } from './places.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { MovingSession } from './follow-owner.ts'
import { openStore } from './open-store.ts'
import { socketPathIn } from './runtime-folder.ts'
import { SessionHost } from './session-host.ts'
import { startChild, type Child } from './testing/child.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Here {
  home: FakeHome
  store: SessionStore
  host: SessionHost
  /** Another process that owns a session. */
  owner: (...args: string[]) => Promise<Child & { sessionId: string; access: string }>
}

async function here(): Promise<Here> {
  const home = await fakeHome()
  cleanUps.push(() => home[Symbol.asyncDispose]())
  const store = await openStore(placesOf(home))
  cleanUps.push(() => store.close())
  const host = await SessionHost.open({ io: home, store, owner: 'terminal', clientName: 'here' })
  cleanUps.push(() => host.close())
  const owner: Here['owner'] = async (...args) => {
    const program = new URL('testing/owner-process.ts', import.meta.url)
    const child = startChild(program, [home.cwd, ...args], home)
    cleanUps.push(() => child[Symbol.asyncDispose]())
    return Object.assign(child, JSON.parse(await child.line()) as { sessionId: string; access: string })
  }
  return { home, store, host, owner }
}

function saying(home: FakeHome, ...answers: string[]): void {
  home.provider.script(
    ...answers.map((text) => ({ type: 'answer' as const, content: [{ type: 'text' as const, chunks: [text] }] })),
  )
}

async function until(handle: SessionHandle, holds: () => boolean): Promise<void> {
  if (holds()) return
  await new Promise<void>((resolve) => {
    const stop = handle.subscribe(() => {
      if (!holds()) return
      stop()
      resolve()
    })
  })
}

const answersIn = ({ transcript }: SessionHandle): string[] =>
  [...transcript.path.items].flatMap((item) =>
    item.type === 'assistant' ? item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
  )

describe('a session host', () => {
  test('leaves no session behind if a new one cannot be opened', async () => {
    const { home, host, store } = await here()
    const model = { provider: 'anthropic', modelId: 'claude-sonnet-5' }
    await expect(host.openNew({ cwd: home.cwd, model })).rejects.toThrow('There is no key for Anthropic')
    expect((await store.list()).sessions).toEqual([])
  })

  test('owns a session that it creates, and runs it in its folder', async () => {
    const { home, host } = await here()
    saying(home, 'Hello.')
    const { handle, access, cwd } = await host.open(await host.create({ cwd: home.cwd }))
    expect([access, cwd]).toEqual([{ type: 'owner' }, home.cwd])
    await handle.prompt('hi')
    await until(handle, () => answersIn(handle).length === 1)
    expect(answersIn(handle)).toEqual(['Hello.'])
  })

  test('attaches to the process that owns a session, and takes over when that process is killed', async () => {
    const { home, host, owner } = await here()
    saying(home, 'From the owner.', 'From here.')
    const { process: other, sessionId } = await owner('new')
    const opened = await host.open(sessionId)
    expect(opened.access).toEqual({ type: 'attached', where: `process ${other.pid}` })
    await opened.handle.prompt('one')
    await until(opened.handle, () => answersIn(opened.handle).length === 1)
    const image = await host.keepImage(sessionId, { bytes: pixel, mediaType: 'image/png' })
    expect(image).toMatch(/^[0-9a-f]{64}$/)

    // The next owner executes what the previous one did not answer.
    other.kill('SIGSTOP')
    const unanswered = opened.handle.prompt('two')
    other.kill('SIGKILL')
    await unanswered
    expect(opened.access).toEqual({ type: 'owner' })
    await until(opened.handle, () => answersIn(opened.handle).length === 2)
    expect(answersIn(opened.handle)).toEqual(['From the owner.', 'From here.'])
  })

  test('does not repeat a command that an owner executed without answering', async () => {
    const { home, host } = await here()
    saying(home, 'Once.', 'Twice.')
    const sessionId = await host.create({ cwd: home.cwd })
    const [first, next] = [await host.open(sessionId), await host.open(sessionId)]
    const moving = new MovingSession(unheard(first.handle))
    const prompted = moving.prompt('one')
    await until(next.handle, () => answersIn(next.handle).length === 1)
    await moving.moveTo(next.handle)
    await prompted
    await moving.run('rename', { name: 'afterwards' })
    expect(answersIn(moving)).toEqual(['Once.'])
    moving.stay()
    await moving.close()
    await expect(moving.prompt('two')).rejects.toMatchObject({ type: 'closed' })
  })

  test('lets another process attach to its session', async () => {
    const { home, host, owner } = await here()
    const sessionId = await host.create({ cwd: home.cwd })
    const { handle } = await host.open(sessionId)
    await host.listen()
    const other = await owner(sessionId)
    expect(other.access).toBe('attached')
    await until(handle, () => handle.state('presence')?.length === 2)
    expect((await stat(host.socketPath ?? '')).mode & 0o777).toBe(0o600)
    await handle.close()
    expect(await host.isInUse(sessionId)).toBe(true)
  })

  test('learns when a session of another process is gone for good', async () => {
    const { home, host, store } = await here()
    const sessionId = await host.create({ cwd: home.cwd })
    await host.open(sessionId)
    await host.listen()
    const otherStore = await openStore(placesOf(home))
    cleanUps.push(() => otherStore.close())
    const other = await SessionHost.open({ io: home, store: otherStore, owner: 'terminal' })
    cleanUps.push(() => other.close())
    const { handle, access } = await other.open(sessionId)
    expect(access.type).toBe('attached')
    await host.sessions.release(sessionId)
    await store.delete(sessionId)
    await expect(handle.prompt('hi')).rejects.toMatchObject({ type: 'closed' })
    expect(handle.status).toEqual({ type: 'closed', reason: 'gone' })
  })

  test('opens read-only if the owner does not answer, and names the owner', async () => {
    const { host, owner } = await here()
    const { process: other, sessionId } = await owner('new', 'silent')
    const { handle, access } = await host.open(sessionId)
    expect(access).toMatchObject({
      type: 'read-only',
      reason: expect.stringContaining(`Process ${other.pid} `) as string,
    })
    await expect(handle.prompt('hi')).rejects.toMatchObject({ type: 'session-owned' })
  })

  test('takes over from an owner that exits during the wait', async () => {
    const { host, owner, store } = await here()
    const child = await owner('new', 'silent')
    const open = store.open.bind(store)
    vi.spyOn(store, 'open').mockImplementationOnce(async (...args) => {
      const session = await open(...args)
      child.process.kill('SIGKILL')
      await child.ended
      return session
    })
    expect((await host.open(child.sessionId)).access).toEqual({ type: 'owner' })
  })

  test('opens the session of a killed process, with its run to be resumed', async () => {
    const { home, host, owner, store } = await here()
    home.provider.script({
      type: 'answer',
      content: [
        { type: 'text', chunks: ['Half '] },
        { type: 'wait', gate: 'never' },
      ],
    })
    const child = await owner('new')
    const attached = await host.open(child.sessionId)
    await attached.handle.prompt('go')
    await until(attached.handle, () => attached.handle.transcript.inFlight.size > 0)
    await attached.handle.close()
    child.process.kill('SIGKILL')
    await child.ended
    const again = await SessionHost.open({ io: home, store, owner: 'terminal' })
    cleanUps.push(() => again.close())
    const { handle, access } = await again.open(child.sessionId)
    expect(access).toEqual({ type: 'owner' })
    expect(handle.state('run')?.waitingFor).toMatchObject({ type: 'resume' })
  })

  test('creates its socket only in a private folder, and removes stale sockets', async () => {
    const { home, host } = await here()
    const { runtime } = placesOf(home)
    await writeFile(join(runtime, '999999999-abcdef.sock'), '')
    await host.listen()
    expect((await readdir(runtime)).filter((name) => name.endsWith('.sock'))).toEqual([
      expect.stringMatching(/^\d+-[0-9a-f]{6}\.sock$/),
    ])
    await chmod(runtime, 0o755)
    const second = await SessionHost.open({ io: home, store: await openStore(placesOf(home)), owner: 'terminal' })
    cleanUps.push(() => second.close())
    expect((await stat(runtime)).mode & 0o777).toBe(0o700)
    await writeFile(join(home.home, 'taken'), '')
    await expect(socketPathIn(join(home.home, 'taken'))).rejects.toThrow('EEXIST')
  })
})

/** A handle whose answers are lost until it is closed. */
function unheard(handle: SessionHandle): SessionHandle {
  const cut = Promise.withResolvers<never>()
  cut.promise.catch(() => undefined)
  const run: SessionHandle['run'] = async (...args) => {
    await handle.run(...args)
    return cut.promise
  }
  const close = async (): Promise<void> => {
    cut.reject(new ProblemError({ type: 'closed', title: 'Closed', status: 0 }))
    await handle.close()
  }
  return new Proxy(handle, {
    get: (target, name) => {
      if (name === 'run') return run
      if (name === 'close') return close
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
