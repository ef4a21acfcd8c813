import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sealLine } from '../../line/seal-line.ts'
import { localScope, type Claim, type WritableLog } from '../../log/log-store.ts'
import { SessionStore } from '../../store/session-store.ts'
import { said, user } from '../../testing/builders.ts'
import { missingPostgres, PostgresServer } from '../../testing/postgres-server.ts'
import { testSessionStore } from '../../testing/store-contract.ts'
import { wait } from '../../util/wait.ts'
import { Database, migratePostgres } from './database.ts'
import { PostgresLogStore, type PostgresStoreOptions } from './postgres-store.ts'
import { schema1 } from './schema-1.ts'

if (missingPostgres !== undefined) console.log(missingPostgres)

describe.skipIf(missingPostgres !== undefined)('PostgreSQL store', () => {
  let server: PostgresServer
  const stores: PostgresLogStore[] = []

  beforeAll(async () => {
    server = await PostgresServer.start()
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
  }, 60_000)

  afterAll(async () => {
    await closeAll()
    await server.remove()
  })

  /** A busy machine must not end a lease. */
  const openPort = (options: Partial<PostgresStoreOptions> = {}): PostgresLogStore => {
    const port = new PostgresLogStore({
      url: server.urlFor('app', 'sessions'),
      leaseMs: 60_000,
      connections: 4,
      ...options,
    })
    stores.push(port)
    return port
  }

  const closeAll = async (): Promise<void> => {
    for (const store of stores.splice(0)) await store.close()
  }

  const empty = async (): Promise<void> => {
    await closeAll()
    const tables = [
      'session',
      'entry',
      'blob',
      'derived',
      'stored_size',
      'summary',
      'entry_text',
      'search_term',
      'pending_row',
      'pending_text',
      'node',
    ]
    await server.admin(tables.map((table) => `delete from tapetree.${table};`).join(''), 'sessions')
  }

  const isNobodyWaiting = async (): Promise<boolean> => {
    const [row] = await asAdmin(`select count(*)::int from pg_stat_activity where wait_event_type = 'Lock'`)
    return row?.['count'] === 0
  }

  const asAdmin = (statement: string): Promise<Record<string, unknown>[]> => server.admin(statement, 'sessions')

  testSessionStore({
    test,
    open: async () => {
      const port = openPort()
      return {
        store: new SessionStore(port),
        port,
        reopen: async () => new SessionStore(openPort()),
        writeBehindBack: async (sessionId) => {
          const log = claimed(await openPort().claim(localScope, sessionId, { insist: true }))
          const line = sealLine({ type: 'custom', id: 'foreign', parent_id: null }, 4)
          await log.append([line], { term: log.term ?? 0, head: 3, durability: 'durable' })
        },
        close: empty,
      }
    },
  })

  describe('in a database', () => {
    test('the lines are the bytes that were given', async () => {
      const session = await new SessionStore(openPort()).create({ id: 's', cwd: '/c' })
      await user(session, 'Zeile\u2028 "\\ 漢字 🙂 \u0000 \ud800 end')
      const lines: string[] = []
      for await (const line of session.lines()) if (line.type === 'line') lines.push(line.text)
      await session.close()
      const stored = await server.admin('select line from tapetree.entry order by n', 'sessions')
      expect(stored.map(({ line }) => line)).toEqual(lines)
      await empty()
    })

    test('a session whose process is gone is claimed when its lease has ended', async () => {
      const session = await new SessionStore(openPort()).create({ id: 's' })
      await user(session, 'before')
      const other = openPort()
      expect((await other.claim(localScope, 's')).type).toBe('owned')
      expect(await (await other.open(localScope, 's')).owner?.()).toMatchObject({ process: String(process.pid) })
      await server.admin(`update tapetree.node set lease_until = now() - interval '1 second'`, 'sessions')
      expect(await (await other.open(localScope, 's')).owner?.()).toBeUndefined()
      const log = claimed(await other.claim(localScope, 's'))
      await expect(user(session, 'late')).rejects.toMatchObject({ code: 'fenced' })
      await log.close()
      await empty()
    })

    const lapse = (): Promise<unknown> => asAdmin(`update tapetree.node set lease_until = now() - interval '1 second'`)

    test.each([
      [
        'claim_session',
        `select outcome as found from tapetree.claim_session('local', 's', '$1', '$1', false)`,
        'owned',
      ],
      ['move_session', `select tapetree.move_session('local', 's', 'trash') as found`, 'owned'],
      [
        'claim_abandoned',
        `select count(*)::text as found from tapetree.claim_abandoned('local', '$1', '$1', array(select key from tapetree.find_session('local', 's')))`,
        '0',
      ],
    ])('a renewal that is not visible yet is waited for (%s)', async (_, statement, found) => {
      const log = claimed(await createAndClaim(openPort({ leaseMs: 60_000 })))
      const [row] = await asAdmin('select key, node, claim from tapetree.session')
      await lapse()
      const [beating, claiming] = [await server.connect('app', 'sessions'), await server.connect('app', 'sessions')]
      await beating.query('begin')
      const renewal = `select * from tapetree.beat('${String(row?.['node'])}', null, 'h', '1', 60000, '{}', '{}')`
      await beating.query(renewal)
      const claim = claiming.query<{ found: string }>(statement.replaceAll('$1', randomUUID()))
      while (await isNobodyWaiting()) await wait(5)
      await beating.query('commit')
      expect((await claim).rows).toEqual([{ found }])
      await Promise.all([beating.end(), claiming.end()])
      await log.close()
      await empty()
    })

    test('a renewal that waited for a claim says which sessions were lost', async () => {
      claimed(await createAndClaim(openPort({ leaseMs: 60_000 })))
      const [row] = await asAdmin('select key, node, claim from tapetree.session')
      await lapse()
      const [beating, claiming] = [await server.connect('app', 'sessions'), await server.connect('app', 'sessions')]
      await claiming.query('begin')
      await claiming.query(`select tapetree.claim_session('local', 's', '${randomUUID()}', '${randomUUID()}', false)`)
      const { key, node, claim } = row as Record<'key' | 'node' | 'claim', string>
      const renewal = beating.query(
        `select * from tapetree.beat('${node}', null, 'h', '1', 60000, '{${key}}', '{${claim}}')`,
      )
      while (await isNobodyWaiting()) await wait(5)
      await claiming.query('commit')
      expect((await renewal).rows).toEqual([{ key, claim }])
      await Promise.all([beating.end(), claiming.end()])
      await empty()
    })

    test('a store that closes frees the sessions that it left open', async () => {
      const port = openPort()
      claimed(await createAndClaim(port))
      await port.close()
      await claimed(await openPort().claim(localScope, 's')).close()
      await empty()
    })

    test('a claim whose answer was lost is made once', async () => {
      await claimed(await createAndClaim(openPort())).close()
      const claim = `select term from tapetree.claim_session('local', 's', $1, $1, false)`.replaceAll(
        '$1',
        `'${'1'.repeat(32)}'::uuid`,
      )
      expect([await asAdmin(claim), await asAdmin(claim)]).toEqual([[{ term: 2 }], [{ term: 2 }]])
      const reclaim = claim
        .replace(
          /claim_session.*/,
          `reclaim_session('local', key, '${'1'.repeat(32)}', '${'1'.repeat(32)}', '${'2'.repeat(32)}') as term from tapetree.session`,
        )
        .replace('select term from tapetree.', 'select tapetree.')
      expect([await asAdmin(reclaim), await asAdmin(reclaim)]).toEqual([[{ term: 3 }], [{ term: 3 }]])
      await empty()
    })

    test('a claim that runs after its session was closed is found by its node, and can be handed over', async () => {
      await claimed(await createAndClaim(openPort())).close()
      const [node, claim] = [randomUUID(), randomUUID()]
      await asAdmin(`select tapetree.beat('${node}', null, 'host', '1', 60000, '{}', '{}')`)
      await asAdmin(`select tapetree.claim_session('local', 's', '${node}', '${claim}', false)`)
      const other = openPort()
      expect((await other.claim(localScope, 's')).type).toBe('owned')
      const unheld = (tenant: string, claims: string): Promise<Record<string, unknown>[]> =>
        asAdmin(`select key, claim from tapetree.unheld_sessions('${tenant}', '${node}', '{${claims}}')`)
      expect([await unheld('other', ''), await unheld('local', claim)]).toEqual([[], []])
      const [found] = await unheld('local', randomUUID())
      expect(found).toMatchObject({ claim })
      await asAdmin(`select tapetree.hand_over_session('local', ${String(found?.['key'])}, '${claim}')`)
      await claimed(await other.claim(localScope, 's')).close()
      await empty()
    })

    test('a lost connection during an append is settled by reading', async () => {
      const store = new SessionStore(openPort())
      const session = await store.create({ id: 's' })
      for (let round = 0; round < 10; round++) {
        const ending = server.admin(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`,
          'sessions',
        )
        for (let index = 0; index < 5; index++) {
          await user(session, `message ${round}.${index}`)
        }
        await ending
      }
      const expected = Array.from({ length: 50 }, (_, index) => `user: message ${Math.floor(index / 5)}.${index % 5}`)
      expect(await said(session)).toEqual(expected)
      await session.close()
      expect(await said(await new SessionStore(openPort()).open('s'))).toEqual(expected)
      await empty()
    })

    test('a session goes on after the server crashed and came back', async () => {
      const store = new SessionStore(openPort())
      const session = await store.create({ id: 's' })
      await user(session, 'before')
      await server.stop('SIGQUIT')
      const meanwhile = user(session, 'meanwhile')
      await server.resume()
      await meanwhile
      await user(session, 'after')
      expect(await said(session)).toEqual(['user: before', 'user: meanwhile', 'user: after'])
      await session.close()
      await empty()
    })

    test('a session goes on if all of its connections fall silent', async () => {
      await using relay = await SilentRelay.start(server.urlFor('app', 'sessions'))
      const store = new SessionStore(openPort({ url: relay.url, answerMs: 500 }))
      const session = await store.create({ id: 's' })
      await Promise.all([user(session, 'before'), store.list(), store.search({ text: 'x' })])
      relay.fallSilent()
      await user(session, 'meanwhile')
      await user(session, 'after')
      expect(await said(session)).toEqual(['user: before', 'user: meanwhile', 'user: after'])
      await session.close()
      await empty()
    })

    test('beats that wait leave connections to others', async () => {
      const port = openPort({ leaseMs: 30 })
      const log = claimed(await createAndClaim(port))
      const blocker = await server.connect('admin', 'sessions')
      await blocker.query('begin; lock table tapetree.node in exclusive mode')
      // Each call gives several beats the time to begin.
      for (let count = 0; count < 10; count++) {
        await wait(20)
        expect(await port.placeOf(localScope, 's')).toBe('active')
      }
      await blocker.query('rollback')
      await blocker.end()
      await log.close()
      await empty()
    })

    test('a session that is created while a list is being made does not make the list fail', async () => {
      const url = server.urlFor('app', 'sessions')
      const database = new Database({ url, connections: 2 })
      const call = database.call.bind(database)
      vi.spyOn(database, 'call').mockImplementation(async (text, values) => {
        const rows = await call(text, values)
        if (text.includes('stale_sessions')) await createSession(openPort())
        return rows
      })
      const port = new PostgresLogStore({ url }, database)
      expect(await port.list(localScope, {})).toEqual({ sessions: [] })
      vi.restoreAllMocks()
      expect((await port.list(localScope, {})).sessions).toMatchObject([{ id: 's' }])
      await port.close()
      await empty()
    })

    const placeAfter = async (action: Promise<void>, port: PostgresLogStore, id: string): Promise<unknown> => {
      await action
      return port.placeOf(localScope, id)
    }

    test.each<[string, (port: PostgresLogStore) => Promise<unknown>, unknown]>([
      ['create', (port) => placeAfter(createSession(port, 'new'), port, 'new'), 'active'],
      ['erase', (port) => placeAfter(port.erase(localScope, 's'), port, 's'), undefined],
      ['move', (port) => placeAfter(port.move(localScope, 's', 'archive'), port, 's'), 'archive'],
      ['edit of a shared document', (port) => port.document(localScope, 'edited').write('text', 0), true],
    ])('a repeated %s waits for the standbys as the first one did', async (_, act, result) => {
      const port = openPort()
      await claimed(await createAndClaim(port)).close()
      await awaitStandby('none_of_them')
      const done = act(port)
      await asAdmin(`select pg_terminate_backend(${await waitingFor(done, 'app')}, 10000)`)
      const next = (await waitingFor(done, 'app')) === undefined ? 'it has ended' : 'it waits'
      await awaitStandby('')
      expect(next).toBe('it waits')
      expect(await done).toBe(result)
      await empty()
    })

    /** Makes commits wait for a standby with this name. Resolves when they do. */
    const awaitStandby = async (name: string): Promise<void> => {
      await asAdmin(`alter system set synchronous_standby_names = '${name}'`)
      await asAdmin('select pg_reload_conf()')
      for (let isInForce = name === ''; !isInForce;) {
        const probe = asAdmin(`select pg_logical_emit_message(true, '', '')`)
        const pid = await waitingFor(probe, 'admin')
        isInForce = pid !== undefined
        if (isInForce) await asAdmin(`select pg_cancel_backend(${pid})`)
        await probe
      }
    }

    /** The process that waits for a standby; undefined if the work of this role ends without it. */
    const waitingFor = async (work: Promise<unknown>, role: string): Promise<number | undefined> => {
      let isOver = false
      void work.catch(() => undefined).finally(() => (isOver = true))
      for (;;) {
        const [row] = await asAdmin(
          `select pid from pg_stat_activity where usename = '${role}' and wait_event = 'SyncRep'`,
        )
        if (row) return Number(row['pid'])
        if (isOver) return undefined
      }
    }

    test('a call waits for the database as long as its patience lasts', async () => {
      const port = openPort({ patienceMs: 0 })
      await server.stop()
      await expect(port.placeOf(localScope, 's')).rejects.toMatchObject({ code: 'storage-failed' })
      const patient = openPort().placeOf(localScope, 's')
      await server.resume()
      expect(await patient).toBeUndefined()
      await empty()
    })
  })

  describe('derived data', () => {
    const checkpoint = { count: 1, changed: new Map([[0, 'piece']]) }

    test('is saved while an append waits for its standbys; the row of the list follows later', async () => {
      const port = openPort()
      const log = claimed(await createAndClaim(port))
      const client = await server.connect('app', 'sessions')
      await client.query('begin')
      const line = sealLine({ type: 'custom', id: 'a', parent_id: null }, 2).text
      await client.query(
        `select tapetree.append_lines(array['local'], array[key], array[term], array[1], array[1], array[1], array[1], $1)
         from tapetree.find_session('local', 's'), lateral (select ${log.term} as term) t`,
        [line],
      )
      const info = { id: 's', name: 'Early', modified: '2026-01-01T00:00:00.000Z', status: 'idle' }
      await log.saveDerived({ checkpoint, metadata: JSON.stringify({ ...info, usage: {}, seq: 1 }) })
      expect(await log.loadCheckpoint()).toEqual(['piece'])
      await client.query('commit')
      await client.end()
      expect((await port.list(localScope, {})).sessions).toMatchObject([{ id: 's', name: '' }])
      await log.saveDerived({ metadata: JSON.stringify({ ...info, name: 'Late', usage: {}, seq: 2 }) })
      expect(await asAdmin('select row_lines from tapetree.summary')).toEqual([{ row_lines: 2 }])
      expect(await asAdmin('select count(*)::int from tapetree.pending_row')).toEqual([{ count: 0 }])
      await log.close()
      await empty()
    })

    test('of a session that is being erased is not stored', async () => {
      const log = claimed(await createAndClaim(openPort()))
      const client = await server.connect('app', 'sessions')
      await asAdmin('update tapetree.session set node = null')
      await client.query('begin')
      const erased = await client.query<{ outcome: string }>(`select tapetree.erase_session('local', 's') as outcome`)
      expect(erased.rows).toEqual([{ outcome: 'erased' }])
      const saved = log.saveDerived({ checkpoint }).then(
        () => 'saved',
        (error: unknown) => error,
      )
      while (await isNobodyWaiting()) await wait(5)
      await client.query('commit')
      await client.end()
      expect(await saved).toMatchObject({ code: 'fenced' })
      expect(await asAdmin('select from tapetree.derived')).toEqual([])
      await empty()
    })
  })

  describe('a search for a part of a word', () => {
    const hits = async (store: SessionStore, words: string): Promise<string[]> =>
      (await store.search({ text: words })).map(({ sessionId }) => sessionId).sort()

    test('finds it after another session with the same word was erased, and no term stays that only that one had', async () => {
      const store = new SessionStore(openPort())
      await write(store, 'kept', 'a harbourmaster')
      await write(store, 'erased', 'the harbourmaster and the lighthouse')
      expect(await hits(store, 'bourmast')).toEqual(['erased', 'kept'])
      await store.delete('erased')
      await store.erase('erased')
      expect(await hits(store, 'bourmast')).toEqual(['kept'])
      expect(await asAdmin('select term from tapetree.search_term order by term')).toEqual([
        { term: 'a' },
        { term: 'harbourmaster' },
      ])
      await empty()
    })

    test('finds it if more terms have it than are named one by one', async () => {
      const store = new SessionStore(openPort())
      const words = Array.from({ length: 600 }, (_, index) => `x${index}common`)
      await write(store, 'first', words.slice(0, 300).join(' '))
      await write(store, 'second', words.slice(300).join(' '))
      expect(await hits(store, 'common')).toEqual(['first', 'second'])
      expect(await hits(store, '9common')).toEqual(['first', 'second'])
      expect(await hits(store, '31common')).toEqual(['first', 'second'])
      expect(await hits(store, '431common common')).toEqual(['second'])
      await empty()
    })

    test('a term is kept if a text with it is saved while another one is erased', async () => {
      const store = new SessionStore(openPort())
      await write(store, 'erased', 'lighthouse')
      await hits(store, 'house')
      await store.delete('erased')
      await write(store, 'kept', 'lighthouse')
      const client = await server.connect('app', 'sessions')
      await client.query('begin')
      const text = { n: 3, seq: 3, ms: 1, role: 'user', folded: 'lighthouse', terms: ['lighthouse'] }
      await client.query(
        `select tapetree.save_texts('local', key, 0, lines, $1) from tapetree.find_session('local', 'kept')`,
        [JSON.stringify([text])],
      )
      const outcome = { isErased: false }
      const erased = store.erase('erased').then(() => (outcome.isErased = true))
      while (!outcome.isErased && (await isNobodyWaiting())) await wait(5)
      await client.query('commit')
      await client.end()
      await erased
      expect(await hits(store, 'ghthou')).toEqual(['kept'])
      await empty()
    })

    test('a long word of letters beyond the basic plane is indexed, and a search works afterwards', async () => {
      const store = new SessionStore(openPort())
      const long = `a${'𐐨'.repeat(40)}`
      await write(store, 'long', long)
      await write(store, 'other', 'lighthouse')
      expect(await hits(store, 'lighthouse')).toEqual(['other'])
      expect(await hits(store, long)).toEqual(['long'])
      await empty()
    })

    const write = async (store: SessionStore, id: string, words: string): Promise<void> => {
      const session = await store.create({ id })
      await user(session, words)
      await session.close()
    }
  })

  describe('roles and tenants', () => {
    test('a reader sees no row of another tenant, and none without a tenant', async () => {
      const store = new SessionStore(openPort())
      const session = await store.create({ id: 's' })
      await user(session, 'secret')
      await session.putBlob(new Uint8Array([1]))
      await session.close()
      await store.search({ text: 'secret' })
      const seen = async (tenant: string): Promise<number[]> => {
        const counts: number[] = []
        for (const table of ['session', 'entry', 'blob', 'derived', 'summary', 'entry_text', 'search_term']) {
          const [row] = await asApp(
            `select set_config('tapetree.tenant', '${tenant}', false); select count(*)::int as n from tapetree.${table}`,
          )
          counts.push(Number(row?.['n']))
        }
        return counts
      }
      expect(await seen('local')).toEqual([1, 3, 1, 1, 1, 1, 1])
      expect(await seen('other')).toEqual([0, 0, 0, 0, 0, 0, 0])
      expect(await seen('')).toEqual([0, 0, 0, 0, 0, 0, 0])
      await empty()
    })

    test('an application writes through functions alone', async () => {
      for (const table of ['session', 'entry', 'blob', 'summary', 'version']) {
        await expect(asApp(`delete from tapetree.${table}`)).rejects.toThrow(/permission denied/)
      }
      await expect(asApp('select * from tapetree.node')).rejects.toThrow(/permission denied/)
      await expect(asApp('create table tapetree.mine ()')).rejects.toThrow(/permission denied/)
    })

    test('an append that names another tenant than the session has stores nothing', async () => {
      const log = claimed(await createAndClaim(openPort()))
      const [row] = await server.admin('select key from tapetree.session', 'sessions')
      const line = sealLine({ type: 'custom', id: 'x', parent_id: null }, 2).text
      const call = `select * from tapetree.append_lines(array['other'], array[${String(row?.['key'])}]::bigint[], array[1], array[1], array[1], array[1], array[1], '${line}')`
      expect(await asApp(call)).toEqual([])
      expect(await asApp(call.replace('other', 'local'))).toEqual([{ place: 1, first: 2 }])
      await log.close()
      await empty()
    })

    test('a role that is bound to a tenant reads and writes no other one', async () => {
      await asAdmin(`
        create role bound login in role tapetree_app;
        insert into tapetree.bound_role values ('bound', 'mine')`)
      const url = server.urlFor('bound', 'sessions')
      const mine = new SessionStore(openPort({ url }), { scope: { tenant: 'mine' } })
      const session = await mine.create({ id: 's' })
      await user(session, 'of my own')
      await session.close()
      expect((await mine.search({ text: 'own' })).length).toBe(1)
      await claimed(await createAndClaim(openPort())).close()
      const others = openPort({ url })
      expect(await others.placeOf(localScope, 's')).toBeUndefined()
      expect(await others.list(localScope, {})).toEqual({ sessions: [] })
      await expect(others.claim(localScope, 's')).rejects.toThrow(/serves another tenant/)
      await expect(others.erase(localScope, 's')).rejects.toThrow(/serves another tenant/)
      const statement = `select set_config('tapetree.tenant', 'local', false); select line from tapetree.entry`
      expect(await asApp(statement, 'bound')).toEqual([])
      expect((await asApp(statement, 'app')).length).toBe(1)
      await empty()
      await asAdmin('delete from tapetree.bound_role; drop role bound')
    })

    const asApp = async (statements: string, role = 'app'): Promise<Record<string, unknown>[]> => {
      const client = await server.connect(role, 'sessions')
      try {
        const result = (await client.query(statements)) as unknown as
          | { rows: Record<string, unknown>[] }
          | { rows: Record<string, unknown>[] }[]
        return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
      } finally {
        await client.end()
      }
    }
  })

  describe('sessions of a process that died', () => {
    /** A store whose process ended without closing its sessions. */
    const leaveBehind = async (names: readonly string[]): Promise<void> => {
      const port = new PostgresLogStore({ url: server.urlFor('app', 'sessions'), connections: 2 })
      for (const id of names) {
        await port.create(localScope, id, sealLine({ type: 'session', id }, 1))
        await port.claim(localScope, id)
      }
      await port.close()
    }
    const ids = Array.from({ length: 7 }, (_, index) => `s${index}`)

    test('are claimed together, a number at a time, each by one process only', async () => {
      await leaveBehind(ids)
      const [first, second] = [openPort(), openPort()]
      await claimed(await first.claim(localScope, 's0')).close()
      const [some, others] = await Promise.all([
        first.claimAbandoned(localScope, { limit: 4 }),
        second.claimAbandoned(localScope, { limit: 4 }),
      ])
      const [rest, none] = [
        await first.claimAbandoned(localScope, { limit: 4 }),
        await second.claimAbandoned(localScope, { limit: 4 }),
      ]
      const all = [...some, ...others, ...rest].map(({ sessionId }) => sessionId)
      expect([all.toSorted(), none]).toEqual([ids.slice(1), []])
      for (const { log } of [...some, ...others, ...rest]) {
        expect(log.term).toBe(2)
        const line = sealLine({ type: 'message', id: 'm' }, 2)
        expect(await log.append([line], { term: 1, head: 1, durability: 'durable' })).toMatchObject({ type: 'fenced' })
        expect(await log.append([line], { term: 2, head: 1, durability: 'durable' })).toMatchObject({
          type: 'appended',
        })
        await log.close()
      }
      await empty()
    })

    test('are opened by a session store, unlike those of living processes, closed ones and those of other tenants', async () => {
      await leaveBehind(['dead'])
      const living = openPort()
      await createAndClaim(living)
      const port = openPort()
      expect(await new SessionStore(port, { scope: { tenant: 'other' } }).openAbandoned()).toEqual([])
      expect(await new SessionStore(port).restrictedTo((cwd) => cwd === '/elsewhere').openAbandoned()).toEqual([])
      const opened = await new SessionStore(port).openAbandoned()
      expect(opened?.map(({ id }) => id)).toEqual(['dead'])
      for (const session of opened ?? []) {
        await user(session, 'going on')
        expect(await said(session)).toEqual(['user: going on'])
        await session.close()
      }
      await empty()
    })

    test('those that are handed over are opened at once, if something in them is unfinished', async () => {
      const store = new SessionStore(openPort())
      const [running, idle] = [await store.create({ id: 'running' }), await store.create({ id: 'idle' })]
      await running.append({ type: 'run_start', runStart: { runId: 'run-1', leafId: null } })
      await running.close({ handOver: true })
      await idle.close({ handOver: true })
      expect((await store.open('running', { readOnly: true })).owner).toBeUndefined()
      const opened = await new SessionStore(openPort()).openAbandoned()
      expect(opened?.map(({ id, openRun }) => ({ id, run: openRun?.runId }))).toEqual([{ id: 'running', run: 'run-1' }])
      for (const session of opened ?? []) await session.close()
      await store.close()
      await empty()
    })

    test('are looked for without reading those of living processes', async () => {
      const living = randomUUID()
      await server.admin(
        `insert into tapetree.node values ('${living}', null, 'h', '1', now() + interval '1 hour')`,
        'sessions',
      )
      const blocksRead = async (sessions: number): Promise<number> => {
        await server.admin(
          `insert into tapetree.session (tenant, id, creation, node, claim)
           select 'local', 'owned-${sessions}-' || n, gen_random_uuid(), '${living}', gen_random_uuid()
           from generate_series(1, ${sessions}) n;
           analyze tapetree.session`,
          'sessions',
        )
        const [row] = await server.admin(
          `explain (analyze, buffers, format json) select * from tapetree.abandoned_sessions('local', '${randomUUID()}')`,
          'sessions',
        )
        const [{ Plan: plan }] = (row as { 'QUERY PLAN': [{ Plan: Record<string, number> }] })['QUERY PLAN']
        return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
      }
      const [few, many] = [await blocksRead(100), await blocksRead(5000)]
      expect(many).toBeLessThan(2 * few + 20)
      await server.admin(
        `delete from tapetree.session where node = '${living}'; delete from tapetree.node where id = '${living}'`,
        'sessions',
      )
      await empty()
    })

    test('the claims of a call whose answer was lost are returned by the next one', async () => {
      await leaveBehind(['a', 'b'])
      const client = await server.connect('app', 'sessions')
      const found = await client.query<{ key: string }>(
        `select key from tapetree.abandoned_sessions('local', '${randomUUID()}')`,
      )
      const keys = found.rows.map(({ key }) => key).join(', ')
      const statement = `select id, term from tapetree.claim_abandoned('local', '${randomUUID()}', '${randomUUID()}', array[${keys}]) order by id`
      const twice = [(await client.query(statement)).rows, (await client.query(statement)).rows]
      await client.end()
      const rows = [
        { id: 'a', term: 2 },
        { id: 'b', term: 2 },
      ]
      expect(twice).toEqual([rows, rows])
      await empty()
    })
  })

  describe('shared documents', () => {
    test('are written by one of several processes at a time, and are apart for each tenant', async () => {
      const [left, right] = [openPort(), openPort()]
      const here = { tenant: 'local' }
      const tokens = [left.document(here, 'tokens'), right.document(here, 'tokens')] as const
      expect(await tokens[0].read()).toBeUndefined()
      expect(await Promise.all([tokens[0].write('a', 0), tokens[1].write('b', 0)])).toContain(false)
      expect(await tokens[1].read()).toMatchObject({ version: 1 })
      expect(await tokens[1].write('c', 1)).toBe(true)
      expect(await tokens[0].write('d', 1)).toBe(false)
      expect(await tokens[0].read()).toEqual({ version: 2, content: 'c' })
      expect(await left.document({ tenant: 'other' }, 'tokens').read()).toBeUndefined()
      expect(await left.document(here, 'pairing').read()).toBeUndefined()
    })

    test('an edit whose answer was lost is not made twice', async () => {
      const client = await server.connect('app', 'sessions')
      const statement = `select tapetree.write_document('local', 'repeated', 0, '${randomUUID()}', 'x') as done`
      expect([(await client.query(statement)).rows, (await client.query(statement)).rows]).toEqual([
        [{ done: true }],
        [{ done: true }],
      ])
      const found = await client.query(`select version from tapetree.read_document('local', 'repeated')`)
      await client.end()
      expect(found.rows).toEqual([{ version: 1 }])
    })
  })

  test('processes find each other by name, until they end', async () => {
    const left = openPort({ node: 'left', address: 'http://left:1' })
    const right = openPort({ node: 'right', address: 'http://right:1' })
    await right.nodes()
    const named = async (): Promise<string[]> => (await left.nodes()).map(({ name }) => name).toSorted()
    expect(await named()).toEqual(['left', 'right'])
    await createAndClaim(right)
    await right.close()
    expect(await named()).toEqual(['left'])
  })

  describe('migrations', () => {
    test('processes that migrate at the same time end with one schema', async () => {
      await server.admin('create database fresh')
      const url = server.urlFor('admin', 'fresh')
      await Promise.all([migratePostgres(url), migratePostgres(url), migratePostgres(url)])
      expect(await server.admin('select number from tapetree.version', 'fresh')).toEqual([{ number: 1 }])
    })

    test('a database of version 1 is read', async () => {
      await server.admin('create database fixture')
      const script = readFileSync(new URL('fixtures/schema-1.sql', import.meta.url), 'utf8')
      await server.admin(script, 'fixture')
      await migratePostgres(server.urlFor('admin', 'fixture'))
      const store = new SessionStore(openPort({ url: server.urlFor('app', 'fixture') }))
      const session = await store.open('from-version-1')
      expect(await said(session)).toEqual(['user: written by version 1'])
      await user(session, 'and by this build')
      expect((await store.list()).sessions).toMatchObject([{ id: 'from-version-1', messageCount: 2 }])
      expect((await store.search({ text: 'version build' })).length).toBe(0)
      expect((await store.search({ text: 'written' })).length).toBe(1)
      await session.close()
      await closeAll()
    })

    test('the script of version 1 is the one in the fixture', () => {
      const fixture = readFileSync(new URL('fixtures/schema-1.sql', import.meta.url), 'utf8')
      expect(fixture).toContain(schema1)
    })

    test('a newer schema and a missing one are named', async () => {
      await server.admin('create database none')
      const none = openPort({ url: server.urlFor('app', 'none') })
      await expect(none.placeOf(localScope, 's')).rejects.toThrow(/Run migratePostgres/)
      await server.admin('update tapetree.version set number = 9', 'fresh')
      const newer = openPort({ url: server.urlFor('app', 'fresh') })
      await expect(newer.placeOf(localScope, 's')).rejects.toMatchObject({ code: 'newer-format' })
      await expect(migratePostgres(server.urlFor('admin', 'fresh'))).rejects.toMatchObject({ code: 'newer-format' })
      await closeAll()
    })
  })
})

/** Passes on what clients and the server say to each other. Connections can fall silent: they stay open, and nothing passes. */
class SilentRelay {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tt-relay-'))
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly url: string

  private constructor(url: string) {
    const [, host = ''] = /@([^/]+)/.exec(url) ?? []
    const folder = decodeURIComponent(host)
    this.url = url.replace(host, encodeURIComponent(this.#folder))
    this.#server = createServer((client) => {
      const server = createConnection(join(folder, socketName))
      client.pipe(server)
      server.pipe(client)
      for (const socket of [client, server]) {
        this.#sockets.add(socket)
        socket.on('error', () => undefined)
        socket.on('close', () => this.#sockets.delete(socket))
      }
    }).listen(join(this.#folder, socketName))
  }

  static async start(url: string): Promise<SilentRelay> {
    const relay = new SilentRelay(url)
    await once(relay.#server, 'listening')
    return relay
  }

  fallSilent(): void {
    for (const socket of this.#sockets) socket.unpipe().pause()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    rmSync(this.#folder, { recursive: true })
  }
}

const socketName = '.s.PGSQL.5432'

function claimed(claim: Claim): WritableLog {
  if (claim.type !== 'claimed') throw new Error(`The session is owned: ${claim.owner.reason}`)
  return claim.log
}

async function createSession(port: PostgresLogStore, id = 's'): Promise<void> {
  await port.create(localScope, id, sealLine({ type: 'session', id }, 1))
}

async function createAndClaim(port: PostgresLogStore): Promise<Claim> {
  await createSession(port)
  return port.claim(localScope, 's')
}
