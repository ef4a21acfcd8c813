import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { acquireWriterLock, type LockAttempt, type LockKind, type WriterLock } from './writer-lock.ts'

let folder: string
let path: string
const locks: WriterLock[] = []
const processes: ChildProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'writer-lock-'))
  path = join(folder, 'lock')
})

afterEach(async () => {
  vi.doUnmock('fs-native-extensions')
  vi.restoreAllMocks()
  for (const lock of locks.splice(0)) lock.release()
  await Promise.all(processes.splice(0).map(kill))
  rmSync(folder, { recursive: true, force: true })
})

describe.each<LockKind>(['ofd', 'sqlite'])('a lock of kind %s', (kind) => {
  const kinds = [kind]

  test('is an empty file that only its owner can read, without companion files', async () => {
    const lock = await locked(path, kinds)
    const during = readdirSync(folder)
    lock.release()
    expect({ kind: lock.kind, during, after: readdirSync(folder), ...modeAndSize() }).toEqual({
      kind,
      during: ['lock'],
      after: ['lock'],
      mode: 0o600,
      size: 0,
    })
  })

  test('is held against a second attempt of the same process, by the same path and by every other name of the file', async () => {
    await locked(path, kinds)
    linkSync(path, join(folder, 'hard-link'))
    symlinkSync(folder, `${folder}-alias`)
    const names = [path, relative('.', path), join(folder, 'hard-link'), join(`${folder}-alias`, 'lock')]
    const answers = await Promise.all(names.map((name) => acquireWriterLock(name)))
    rmSync(`${folder}-alias`)
    expect(answers).toEqual(names.map(() => ({ type: 'held' })))
    expect(await attemptElsewhere()).toBe('held')
  })

  test('goes to exactly one of two concurrent attempts', async () => {
    const attempts = await Promise.all([acquireWriterLock(path, { kinds }), acquireWriterLock(path, { kinds })])
    keep(attempts)
    expect(attempts.map(({ type }) => type)).toEqual(['locked', 'held'])
  })

  test('is free after its release, here and in another process', async () => {
    const first = await locked(path, kinds)
    first.release()
    const second = await locked(path, kinds)
    first.release()
    expect({ first: first.isIntact(), second: second.isIntact() }).toEqual({ first: false, second: true })
    expect(await attemptElsewhere()).toBe('held')
    second.release()
    expect(await attemptElsewhere()).toBe('locked')
  })

  test('stays held while its process is stopped, and is free once that process is killed', async () => {
    const holder = await startHolder({ kinds })
    holder.process.kill('SIGSTOP')
    expect(await acquireWriterLock(path)).toEqual({ type: 'held' })
    holder.process.kill('SIGCONT')
    expect(await holder.ask('isIntact')).toBe(true)
    await kill(holder.process)
    expect((await locked(path, ['ofd', 'sqlite'])).isIntact()).toBe(true)
  })

  test.each<LockKind>(['ofd', 'sqlite'])('excludes an attempt of kind %s in another process', async (other) => {
    const holder = await startHolder({ kinds })
    expect(await acquireWriterLock(path, { kinds: [other] })).toEqual({ type: 'held' })
    expect(await attemptElsewhere([other])).toBe('held')
    expect(await holder.ask('release')).toBe(true)
    const lock = await locked(path, [other])
    expect(await holder.ask('lock')).toBe('held')
    lock.release()
    expect(await holder.ask('lock')).toBe('locked')
  })

  test('is not inherited by a child process', async () => {
    const lock = await locked(path, kinds)
    await startHolder({ at: join(folder, 'other') })
    lock.release()
    expect(await attemptElsewhere()).toBe('locked')
  })

  test('stays held even if its process drops the reference', async () => {
    const holder = await startHolder({ kinds })
    expect(await holder.ask('forget')).toBe(true)
    expect(await acquireWriterLock(path)).toEqual({ type: 'held' })
  })

  test('is not intact once its file was deleted, and this process still counts as its holder', async () => {
    const lock = await locked(path, kinds)
    rmSync(path)
    expect(lock.isIntact()).toBe(false)
    expect(await acquireWriterLock(path, { kinds })).toEqual({ type: 'held' })
    expect(existsSync(path)).toBe(false)
  })

  test('is not intact once its file was replaced', async () => {
    const lock = await locked(path, kinds)
    writeFileSync(join(folder, 'new'), '')
    renameSync(join(folder, 'new'), path)
    expect(lock.isIntact()).toBe(false)
  })

  test('is not intact once its folder was renamed, and the file is held under its new name', async () => {
    mkdirSync(join(folder, 'session'))
    const lock = await locked(join(folder, 'session', 'lock'), kinds)
    renameSync(join(folder, 'session'), join(folder, 'moved'))
    expect(lock.isIntact()).toBe(false)
    expect(await acquireWriterLock(join(folder, 'moved', 'lock'), { kinds })).toEqual({ type: 'held' })
    expect(await attemptElsewhere(kinds, join(folder, 'moved', 'lock'))).toBe('held')
  })

  test('cannot be taken through a symbolic link', async () => {
    symlinkSync(join(folder, 'target'), path)
    expect(await acquireWriterLock(path, { kinds })).toEqual({ type: 'unavailable', reason: expect.any(String) })
    expect(readdirSync(folder)).toEqual(['lock'])
  })

  test('cannot be taken in a missing folder', async () => {
    expect(await acquireWriterLock(join(folder, 'missing', 'lock'), { kinds })).toEqual({
      type: 'unavailable',
      reason: expect.stringContaining('ENOENT'),
    })
  })

  test('cannot be taken in a read-only folder', async () => {
    chmodSync(folder, 0o555)
    expect(await asOrdinaryUser(() => acquireWriterLock(path, { kinds }))).toEqual({
      type: 'unavailable',
      reason: expect.stringContaining('EACCES'),
    })
  })
})

describe('without the native package', () => {
  test('the lock is an SQLite lock', async () => {
    vi.doMock('fs-native-extensions', () => {
      throw new Error('no build for this machine')
    })
    expect((await locked(path)).kind).toBe('sqlite')
    expect(await acquireWriterLock(join(folder, 'other'), { kinds: ['ofd'] })).toEqual({
      type: 'unavailable',
      reason: expect.stringContaining(`No kernel lock is available for ${join(folder, 'other')} (ofd: `),
    })
  })

  test('a file that is not empty is neither locked nor changed', async () => {
    writeFileSync(path, 'text in the lock file')
    expect(await acquireWriterLock(path, { kinds: ['sqlite'] })).toEqual({
      type: 'unavailable',
      reason: `No kernel lock is available for ${path} (sqlite: file is not a database).`,
    })
    expect(readFileSync(path, 'utf8')).toBe('text in the lock file')
  })
})

describe('a file system that rejects one kind of lock', () => {
  test('gets the other kind', async () => {
    vi.doMock('fs-native-extensions', () => ({
      tryLock: () => {
        throw new Error('ENOLCK: no locks available')
      },
    }))
    expect((await locked(path)).kind).toBe('sqlite')
  })
})

describe('a lock file that is replaced while it is being locked', () => {
  test('is locked again', async () => {
    await mockTryLock({ before: deleteFor(1) })
    const lock = await locked(path, ['ofd'])
    expect(lock.isIntact()).toBe(true)
    expect(await attemptElsewhere()).toBe('held')
  })

  test('is locked again with SQLite', async () => {
    mockExec({ before: deleteFor(1) })
    const lock = await locked(path, ['sqlite'])
    expect(lock.isIntact()).toBe(true)
    expect(await attemptElsewhere()).toBe('held')
  })

  test('fails if that happens every time', async () => {
    await mockTryLock({ before: deleteFor(Infinity) })
    mockExec({ before: deleteFor(Infinity) })
    const sentence = 'the file was replaced 10 times while it was being locked'
    expect(await acquireWriterLock(path)).toEqual({
      type: 'unavailable',
      reason: `No kernel lock is available for ${path} (ofd: ${sentence}; sqlite: ${sentence}).`,
    })
  })

  function deleteFor(times: number): () => void {
    let count = 0
    return () => {
      count += 1
      if (count <= times) rmSync(path)
    }
  }
})

interface NativeLocks {
  tryLock: (descriptor: number) => boolean
  unlock: (descriptor: number) => void
}

async function mockTryLock({ before }: { before: () => void }): Promise<void> {
  const native = await vi.importActual<NativeLocks>('fs-native-extensions')
  vi.doMock('fs-native-extensions', () => ({
    unlock: native.unlock,
    tryLock: (descriptor: number) => {
      before()
      return native.tryLock(descriptor)
    },
  }))
}

function mockExec({ before }: { before: () => void }): void {
  const exec = Reflect.get(DatabaseSync.prototype, 'exec')
  vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
    before()
    exec.call(this, sql)
  })
}

async function locked(at: string, kinds?: readonly LockKind[]): Promise<WriterLock> {
  const attempt = await acquireWriterLock(at, kinds === undefined ? {} : { kinds })
  if (attempt.type !== 'locked') throw new Error(JSON.stringify(attempt))
  locks.push(attempt.lock)
  return attempt.lock
}

function keep(attempts: LockAttempt[]): void {
  for (const attempt of attempts) if (attempt.type === 'locked') locks.push(attempt.lock)
}

function modeAndSize(): { mode: number; size: number } {
  const { mode, size } = lstatSync(path)
  return { mode: mode & 0o777, size }
}

/** Root may write everywhere. */
async function asOrdinaryUser<Result>(act: () => Promise<Result>): Promise<Result> {
  if (process.geteuid?.() !== 0) return act()
  process.seteuid?.(65534)
  try {
    return await act()
  } finally {
    process.seteuid?.(0)
  }
}

interface OtherProcess {
  process: ChildProcess
  ask: (question: 'lock' | 'isIntact' | 'release' | 'forget') => Promise<unknown>
}

const bothKinds: readonly LockKind[] = ['ofd', 'sqlite']

/** The result of an attempt in a new process. */
async function attemptElsewhere(kinds = bothKinds, at = path): Promise<unknown> {
  const other = startProcess({ kinds, at })
  const answer = await other.ask('lock')
  await kill(other.process)
  return answer
}

async function startHolder({ kinds = bothKinds, at = path }): Promise<OtherProcess> {
  const holder = startProcess({ kinds, at })
  expect(await holder.ask('lock')).toBe('locked')
  return holder
}

function startProcess({ kinds, at }: { kinds: readonly LockKind[]; at: string }): OtherProcess {
  const program = `
    const { acquireWriterLock } = await import(${JSON.stringify(import.meta.resolve('./writer-lock.ts'))})
    let lock
    const answers = {
      lock: async () => {
        const attempt = await acquireWriterLock(${JSON.stringify(at)}, { kinds: ${JSON.stringify(kinds)} })
        lock = attempt.lock
        return attempt.type
      },
      isIntact: () => lock.isIntact(),
      release: () => { lock.release(); return true },
      forget: async () => { lock = undefined; await gc({ execution: 'async' }); return true },
    }
    process.on('message', async (question) => process.send(await answers[question]()))
  `
  const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  processes.push(child)
  return {
    process: child,
    ask: async (question) => {
      child.send(question)
      const [answer] = (await once(child, 'message')) as [unknown]
      return answer
    },
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
