import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { localScope } from '../../log/log-store.ts'
import { SessionStore } from '../../store/session-store.ts'
import { assistant, user } from '../../testing/builders.ts'
import { missingPostgres, PostgresServer } from '../../testing/postgres-server.ts'
import { randomFrom } from '../../testing/random-from.ts'
import { wait } from '../../util/wait.ts'
import { copySession, fileCopyTarget, sessionIdsIn } from '../copy.ts'
import { FileLogStore } from '../file/file-store.ts'
import { postgresCopyTarget } from './copy-target.ts'
import { migratePostgres } from './database.ts'
import { PostgresLogStore } from './postgres-store.ts'

if (missingPostgres !== undefined) console.log(missingPostgres)

describe.skipIf(missingPostgres !== undefined)('copies between files and PostgreSQL', () => {
  let server: PostgresServer
  let url: string
  let root: string
  let files: FileLogStore
  let sessions: SessionStore

  beforeAll(async () => {
    server = await PostgresServer.start()
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
    url = server.urlFor('app', 'sessions')
  })

  afterAll(() => server.remove())

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'tt-copy-'))
    files = new FileLogStore({ folder: join(root, 'from') })
    sessions = new SessionStore(files)
    return async () => {
      await sessions.close()
      rmSync(root, { recursive: true, force: true })
    }
  })

  const logOf = (side: string, id: string, place = ''): string => join(root, side, place, id, 'events.jsonl')

  async function makeSession(lines = 20): Promise<string> {
    await using session = await sessions.create({ cwd: '/work' })
    for (const words of ['größer', 'also large']) await assistant(session, words.repeat(60_000))
    await Promise.all(Array.from({ length: lines }, (_, index) => user(session, `message ${index} \0 ✓`)))
    return session.id
  }

  test('sessions go to the database and back, byte for byte, with blobs and places', async () => {
    const [active, archived, deleted] = [await makeSession(1500), await makeSession(), await makeSession(1)]
    await sessions.archive(archived)
    await sessions.delete(deleted)
    const database = postgresCopyTarget(url)
    const back = fileCopyTarget({ folder: join(root, 'back') })
    const all = await sessionIdsIn(files)
    for (const sessionId of all) await copySession({ from: files, to: database, sessionId })
    expect((await sessionIdsIn(database.store)).filter((id) => all.includes(id))).toEqual(all)
    for (const sessionId of all) {
      expect(await copySession({ from: files, to: database, sessionId })).toMatchObject({ outcome: 'present' })
      expect(await copySession({ from: database.store, to: back, sessionId })).toMatchObject({
        outcome: 'copied',
        blobs: 2,
        missingBlobs: 0,
      })
    }
    for (const [id, place] of [[active], [archived, '.archive'], [deleted, '.trash']] as const) {
      expect(readFileSync(logOf('back', id, place)).equals(readFileSync(logOf('from', id, place)))).toBe(true)
    }
    expect((await new SessionStore(back.store).verify(active)).isIntact).toBe(true)
    await database.close()
    await back.close()
  })

  test('a copied session goes on in the database', async () => {
    const id = await makeSession()
    const database = postgresCopyTarget(url)
    await copySession({ from: files, to: database, sessionId: id })
    {
      await using session = await new SessionStore(database.store).open(id)
      await user(session, 'one more')
      expect(session.info.messageCount).toBe(23)
    }
    await expect(copySession({ from: files, to: database, sessionId: id })).rejects.toMatchObject({
      code: 'session-exists',
      message: /2 more lines, so it was continued there/,
    })
    await database.close()
  })

  test('a session that another process has open in the database is not copied', async () => {
    const id = await makeSession()
    const database = postgresCopyTarget(url)
    await copySession({ from: files, to: database, sessionId: id })
    const other = new PostgresLogStore({ url })
    await using _ = await new SessionStore(other).open(id)
    const back = fileCopyTarget({ folder: join(root, 'back') })
    await expect(copySession({ from: database.store, to: back, sessionId: id })).rejects.toMatchObject({
      code: 'session-owned',
    })
    await back.close()
    await database.close()
  })

  test('two processes that copy the same session make one copy', async () => {
    const id = await makeSession()
    const targets = [postgresCopyTarget(url), postgresCopyTarget(url)]
    const first = await targets[0]?.receive(localScope, id, '{"seq":1}')
    const second = targets[1]?.receive(localScope, id, '{"seq":1}')
    await first?.publish('active')
    await expect(second).rejects.toMatchObject({ code: 'session-exists' })
    await first?.close()
    await new SessionStore(targets[0]?.store as PostgresLogStore).erase(id)
    for (const target of targets) await target.close()
  })

  test('a log in which lines were lost is not copied into a database', async () => {
    const id = await makeSession()
    const lines = readFileSync(logOf('from', id), 'utf8').split('\n')
    writeFileSync(logOf('from', id), lines.toSpliced(5, 1).join('\n'))
    const database = postgresCopyTarget(url)
    await expect(copySession({ from: files, to: database, sessionId: id })).rejects.toMatchObject({
      code: 'invalid-entry',
      message: /are missing before line 7/,
    })
    expect(await database.store.placeOf(localScope, id)).toBeUndefined()
    await database.close()
  })

  test('a log whose last lines were merged into one is not copied into a database, which counts them as one', async () => {
    const id = await makeSession()
    const lines = readFileSync(logOf('from', id), 'utf8').split('\n')
    const merged = lines.slice(-3).join('')
    writeFileSync(logOf('from', id), [...lines.slice(0, -3), merged, ''].join('\n'))
    const database = postgresCopyTarget(url)
    await expect(copySession({ from: files, to: database, sessionId: id })).rejects.toMatchObject({
      code: 'invalid-entry',
      message: /is damaged/,
    })
    expect(await database.store.placeOf(localScope, id)).toBeUndefined()
    await database.close()
  })

  test('a database that cannot be reached, or has no schema, is named in the error', async () => {
    const id = await makeSession(1)
    const nowhere = postgresCopyTarget('postgres://app:secret-word@127.0.0.1:1/sessions')
    const error = await nowhere.receive(localScope, id, '{"seq":1}').catch((each: unknown) => each)
    expect(String(error)).toContain('Copy it again')
    expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain('secret-word')
    await nowhere.close()
    const empty = postgresCopyTarget(server.urlFor('admin', 'postgres'))
    await expect(copySession({ from: files, to: empty, sessionId: id })).rejects.toThrow('Run migratePostgres')
    await empty.close()
  })

  test('a copy that is killed, or loses its connection, leaves nothing that can be opened; the next one ends it', async () => {
    const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
    console.log(`SEED=${seed}`)
    const random = randomFrom(seed)
    const id = await makeSession(1200)
    const database = new PostgresLogStore({ url })
    const back = join(root, 'back')
    const whole = readFileSync(logOf('from', id))
    for (const to of [url, back]) {
      for (let round = 0; round < 4; round++) {
        await interruptedCopy({ from: to === url ? join(root, 'from') : url, to, id }, random)
        const found =
          to === url
            ? await database.placeOf(localScope, id)
            : await new FileLogStore({ folder: to }).placeOf(localScope, id)
        expect(found).toBeUndefined()
      }
      const target = to === url ? postgresCopyTarget(url) : fileCopyTarget({ folder: back })
      const from = to === url ? files : database
      expect(await copySession({ from, to: target, sessionId: id })).toMatchObject({ outcome: 'copied' })
      await target.close()
    }
    expect(readFileSync(logOf('back', id)).equals(whole)).toBe(true)
    await database.close()
  })

  /** Copies in a process of its own, and ends it or its connections after one of its steps. */
  async function interruptedCopy(
    { from, to, id }: { from: string; to: string; id: string },
    random: () => number,
  ): Promise<void> {
    const child = spawn(
      process.execPath,
      [
        '-C',
        '@tapetree/source',
        fileURLToPath(new URL('../../testing/copy-process.ts', import.meta.url)),
        from,
        to,
        id,
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const closed = once(child, 'close')
    const stopAt = 1 + Math.floor(random() * 6)
    const isKilled = random() < 0.5 || to !== url
    let steps = 0
    // The process waits for an answer after each step. A copy that goes on with an earlier one has fewer of them.
    for await (const step of child.stdout) {
      if (++steps < stopAt && !String(step).includes('last')) {
        child.stdin.write('go\n')
        continue
      }
      if (isKilled) child.kill('SIGKILL')
      else {
        await server.admin(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and state = 'idle in transaction'`,
        )
        child.stdin.end('go\n'.repeat(1000))
      }
      break
    }
    await closed
    if (from === url) await leaseEnd(id)
    expect(steps).toBeGreaterThan(0)
  }

  /** The claim of a process that was killed ends with its lease. */
  async function leaseEnd(id: string): Promise<void> {
    const database = new PostgresLogStore({ url })
    const log = await database.open(localScope, id)
    while (await log.owner?.()) await wait(50)
    await database.close()
  }
})
