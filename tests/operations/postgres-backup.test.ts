// The steps of docs/guides/postgres.md for backups: a dump, and a base backup with archived WAL restored to a point in time.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { SessionStore, localScope } from '@tapetree/session'
import { copySession } from '@tapetree/session/stores/copy'
import { migratePostgres, postgresCopyTarget, PostgresLogStore } from '@tapetree/session/stores/postgres'
import { user } from '@tapetree/session/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { missingPostgres, PostgresServer } from '../../packages/session/src/testing/postgres-server.ts'

if (missingPostgres !== undefined) console.log(missingPostgres)

const programs = '/usr/lib/postgresql/15/bin'
/** PostgreSQL refuses to run as root. */
const isRoot = process.getuid?.() === 0
const nobody = 65_534
const asNobody = isRoot ? { uid: nobody, gid: nobody } : {}

describe.skipIf(missingPostgres !== undefined)('backups of a PostgreSQL store', () => {
  let server: PostgresServer
  let root: string

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'tt-backup-'))
    server = await PostgresServer.start()
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
    for (const folder of ['archive', 'socket']) mkdirSync(join(root, folder))
    if (isRoot) for (const folder of ['', 'archive', 'socket']) chownSync(join(root, folder), nobody, nobody)
    const archive = join(root, 'archive')
    await server.admin(`alter system set archive_mode = 'on'`)
    await server.admin(`alter system set archive_command = 'test ! -f ${archive}/%f && cp %p ${archive}/%f'`)
    await server.stop()
    await server.resume()
  })

  afterAll(async () => {
    await server.remove()
    rmSync(root, { recursive: true, force: true })
  })

  const run = (program: string, ...args: string[]): Promise<unknown> =>
    promisify(execFile)(join(programs, program), args, { ...asNobody, cwd: root })

  function openStore(url: string): { port: PostgresLogStore; sessions: SessionStore } {
    const port = new PostgresLogStore({ url })
    onTestFinished(() => port.close())
    return { port, sessions: new SessionStore(port) }
  }

  async function say(sessions: SessionStore, id: string, ...words: string[]): Promise<void> {
    await using session = await sessions.open(id, { create: true })
    for (const each of words) await user(session, each)
  }

  async function linesOf(port: PostgresLogStore, id: string): Promise<string[]> {
    const log = await port.open(localScope, id)
    const lines: string[] = []
    for await (const batch of log.lines(0)) lines.push(...batch.map(({ bytes }) => Buffer.from(bytes).toString()))
    return lines
  }

  test('a dump of a running store is restored with the same sessions', async () => {
    const { port, sessions } = openStore(server.urlFor('app', 'sessions'))
    await say(sessions, 'dumped', 'one', 'large '.repeat(100_000))
    await sessions.archive('dumped')
    await sessions.restore('dumped')
    const before = await linesOf(port, 'dumped')
    const dump = join(root, 'sessions.dump')
    await run('pg_dump', '--format=custom', `--file=${dump}`, server.urlFor('admin', 'sessions'))
    await say(sessions, 'dumped', 'later')
    await server.admin(`create database restored encoding 'UTF8' locale 'C.UTF-8' template template0`)
    await run('pg_restore', `--dbname=${server.urlFor('admin', 'restored')}`, dump)
    const restored = openStore(server.urlFor('app', 'restored'))
    expect(await linesOf(restored.port, 'dumped')).toEqual(before)
    expect(await restored.sessions.verify('dumped')).toMatchObject({ isIntact: true, missingBlobs: [] })
    expect((await restored.sessions.search({ text: 'one' })).map(({ sessionId }) => sessionId)).toEqual(['dumped'])
    await say(restored.sessions, 'dumped', 'goes on')
  })

  test('a restore to a point in time has exactly the lines of that time', async () => {
    const { port, sessions } = openStore(server.urlFor('app', 'sessions'))
    await say(sessions, 'a', 'before the backup')
    const base = join(root, 'base')
    const host = decodeURIComponent(new URL(server.urlFor('admin', 'postgres')).hostname)
    await run('pg_basebackup', `--host=${host}`, '--username=admin', '--checkpoint=fast', `--pgdata=${base}`)
    await say(sessions, 'a', 'after the backup', 'large '.repeat(100_000))
    await say(sessions, 'b', 'also after it')
    const expected = { a: await linesOf(port, 'a'), b: await linesOf(port, 'b') }
    const [point] = await server.admin('select clock_timestamp()::text as at')
    await say(sessions, 'a', 'too late')
    await say(sessions, 'c', 'too late')
    await untilArchived()

    const restored = openStore(await restoreTo(base, String(point?.['at'])))
    expect(await linesOf(restored.port, 'a')).toEqual(expected.a)
    expect(await linesOf(restored.port, 'b')).toEqual(expected.b)
    expect(await restored.port.placeOf(localScope, 'c')).toBeUndefined()
    expect(await restored.sessions.verify('a')).toMatchObject({ isIntact: true, missingBlobs: [] })

    const target = postgresCopyTarget(urlOf('app'))
    onTestFinished(() => target.close())
    const copied = copySession({ from: port, to: target, sessionId: 'a', dryRun: true })
    await expect(copied).rejects.toMatchObject({ code: 'session-exists', message: /an earlier state of session a/ })
    await say(restored.sessions, 'a', 'goes on')
    expect((await linesOf(restored.port, 'a')).slice(0, expected.a.length)).toEqual(expected.a)
  })

  async function untilArchived(): Promise<void> {
    const [row] = await server.admin('select pg_walfile_name(pg_current_wal_lsn()) as name')
    await server.admin('select pg_switch_wal()')
    for (let last = ''; last < String(row?.['name']); await pause(50)) {
      const [archiver] = await server.admin('select last_archived_wal as name from pg_stat_archiver')
      last = (archiver?.['name'] as string | null | undefined) ?? ''
    }
  }

  const urlOf = (name: string): string => `postgres://${name}@${encodeURIComponent(join(root, 'socket'))}/sessions`

  /** Starts a server on a base backup, which reads the archive up to that time. */
  async function restoreTo(base: string, time: string): Promise<string> {
    const settings = [
      `restore_command = 'cp ${join(root, 'archive')}/%f %p'`,
      `recovery_target_time = '${time}'`,
      `recovery_target_action = 'promote'`,
      `archive_mode = 'off'`,
      `listen_addresses = ''`,
      `unix_socket_directories = '${join(root, 'socket')}'`,
    ]
    appendFileSync(join(base, 'postgresql.auto.conf'), `${settings.join('\n')}\n`)
    writeFileSync(join(base, 'recovery.signal'), '')
    if (isRoot) chownSync(join(base, 'recovery.signal'), nobody, nobody)
    const child = spawn(join(programs, 'postgres'), ['-D', base], { ...asNobody, stdio: 'ignore' })
    const ended = once(child, 'exit')
    onTestFinished(async () => {
      child.kill('SIGINT')
      await ended
    })
    const asks = ['--no-psqlrc', '--tuples-only', '--command=select pg_is_in_recovery()', urlOf('admin')]
    for (;;) {
      const answer = await promisify(execFile)(join(programs, 'psql'), asks).catch(() => ({ stdout: '' }))
      if (answer.stdout.trim() === 'f') return urlOf('app')
      if (child.exitCode !== null) throw new Error('The restored server ended while it started.')
      await pause(100)
    }
  }
})
