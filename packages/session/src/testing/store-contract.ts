import assert from 'node:assert/strict'
import type { SessionError } from '../errors.ts'
import { text } from '../line/message.ts'
import type { SearchHit, SearchQuery, SessionQuery } from '../state/session-info.ts'
import type { Session } from '../store/session.ts'
import { SessionStore } from '../store/session-store.ts'
import { assistant, call, said, toolResult, user } from './builders.ts'
import { portParts, rejects, type It, type StoreUnderTest } from './port-contract.ts'

export interface ContractRunner {
  /** The test function of the runner in use. */
  test: (title: string, body: () => Promise<void>) => void
  open: () => Promise<StoreUnderTest>
}

/** The contract that every store must pass. */
export function testSessionStore({ test, open }: ContractRunner): void {
  const it = (title: string, body: (given: StoreUnderTest) => Promise<void>): void =>
    test(title, async () => {
      const given = await open()
      try {
        await body(given)
      } finally {
        await given.close()
      }
    })
  const sessionParts = [
    appending,
    branching,
    reading,
    rows,
    searches,
    lists,
    erasing,
    sizes,
    inbox,
    ownership,
    scopes,
    blobs,
    copies,
  ]
  for (const part of [...portParts, ...sessionParts]) part(it)
}

function appending(it: It): void {
  it('an entry becomes a child of the leaf and the new leaf', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    const second = await assistant(session, 'two')
    const entry = await session.getEntry(second)
    assert.equal('parentId' in entry && entry.parentId, first)
    assert.equal(session.leafId, second)
  })

  it('appended entries survive a restart, with the same context', async ({ store, reopen }) => {
    const session = await store.create({ name: 'Greeting', cwd: '/home/someone' })
    await user(session, 'hello')
    await assistant(session, call('a'))
    await toolResult(session, 'a', 'done')
    await session.appendModelChange('some', 'model')
    await session.appendThinkingLevelChange('high')
    const before = await session.getContext()
    await session.close()
    const again = await (await reopen()).open(session.id)
    assert.deepEqual(await again.getContext(), before)
    assert.equal(again.name, 'Greeting')
    assert.equal(again.header?.cwd, '/home/someone')
    assert.equal(before.thinkingLevel, 'high')
    assert.deepEqual(before.model, { provider: 'some', modelId: 'model' })
    await again.close()
  })

  it('concurrent appends are stored in call order, each as a child of the one before', async ({ store }) => {
    const session = await store.create()
    await Promise.all(Array.from({ length: 100 }, (_, index) => user(session, `message ${index}`)))
    assert.deepEqual(
      await said(session),
      Array.from({ length: 100 }, (_, index) => `user: message ${index}`),
    )
  })

  it('every line has the next seq and the announced bytes', async ({ store }) => {
    const session = await store.create()
    const announced: string[] = []
    const stop = session.subscribe((line) => announced.push(line.text))
    await Promise.all([user(session, 'a'), user(session, 'b'), session.setLabel(await user(session, 'c'), 'mark')])
    stop()
    await user(session, 'unheard')
    const lines = await linesOf(session)
    assert.deepEqual(
      lines.map(({ seq }) => seq),
      lines.map((_, index) => index + 1),
    )
    assert.deepEqual(
      lines.slice(1, -1).map((line) => line.text),
      announced,
    )
  })

  it('reading after a cursor gives exactly the later lines', async ({ store }) => {
    const session = await store.create()
    for (let index = 0; index < 20; index++) await user(session, `message ${index}`)
    const all = await linesOf(session)
    for (const after of [0, 1, 7, all.length - 1, all.length]) {
      assert.deepEqual(await linesOf(session, after), all.slice(after))
    }
  })

  it('an entry that is nested too deeply is rejected and changes nothing', async ({ store }) => {
    const session = await store.create()
    const leaf = await user(session, 'before')
    let deep: Record<string, unknown> = {}
    for (let level = 0; level < 80; level++) deep = { deep }
    await rejects(session.appendCustomEntry('deep', deep), 'invalid-entry')
    await user(session, 'after')
    const entry = await session.getEntry(session.leafId as string)
    assert.equal('parentId' in entry && entry.parentId, leaf)
  })

  it('a closed session rejects appends', async ({ store }) => {
    const session = await store.create()
    await session.close()
    await rejects(user(session, 'late'), 'session-closed')
  })
}

function branching(it: It): void {
  it('a moved leaf survives a restart', async ({ store, reopen }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    await assistant(session, 'two')
    await session.branch(first)
    await session.close()
    const again = await (await reopen()).open(session.id)
    assert.equal(again.leafId, first)
    await user(again, 'other')
    assert.deepEqual(await said(again), ['user: one', 'user: other'])
    await again.close()
  })

  it('branching to before the first entry starts a second root', async ({ store }) => {
    const session = await store.create()
    await user(session, 'one')
    await session.branch(null)
    await user(session, 'other')
    assert.equal((await session.getTree()).length, 2)
    assert.deepEqual(await said(session), ['user: other'])
  })

  it('a branch with a summary is one line under its target that names the abandoned leaf', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    const left = await assistant(session, 'two')
    const before = session.head.seq
    const id = await session.branchWithSummary(first, 'it went nowhere')
    assert.equal(session.head.seq, before + 1)
    const entry = await session.getEntry(id)
    assert.equal(entry.type === 'branch_summary' && entry.branchSummary.fromId, left)
    assert.deepEqual(await said(session), ['user: one', 'branchSummary: it went nowhere'])
  })

  it('a label marks an entry, takes the newest text, and never becomes the leaf', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    const second = await user(session, 'two')
    await session.setLabel(first, 'a')
    await session.setLabel(first, 'b')
    assert.equal(session.leafId, second)
    assert.deepEqual([...session.getLabels()], [[first, 'b']])
    await session.setLabel(first, '')
    assert.deepEqual([...session.getLabels()], [])
  })

  it('branching and labelling reject a missing entry', async ({ store }) => {
    const session = await store.create()
    await rejects(session.branch('nowhere'), 'entry-not-found')
    await rejects(session.setLabel('nowhere', 'x'), 'entry-not-found')
    await rejects(session.createBranchedSession('nowhere'), 'entry-not-found')
  })

  it('a branch is rejected while a run is open', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    await session.append({ type: 'run_start', runStart: { runId: 'r1', leafId: first } })
    await rejects(session.branch(first), 'session-busy')
    await rejects(session.branchWithSummary(first, 'x'), 'session-busy')
    await session.append({ type: 'run_end', runEnd: { runId: 'r1', outcome: 'completed' } })
    await session.branch(first)
  })
}

function reading(it: It): void {
  it('a compaction shows its summary, then the kept entries, then later ones', async ({ store }) => {
    const session = await store.create()
    await user(session, 'old')
    const kept = await user(session, 'kept')
    await session.appendCompaction('what was before', kept, 1500)
    await user(session, 'new')
    assert.deepEqual(await said(session), ['compactionSummary: what was before', 'user: kept', 'user: new'])
  })

  it('a compaction rejects a first kept entry outside of the context', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    const second = await user(session, 'two')
    await session.branch(first)
    await rejects(session.appendCompaction('x', second, 1), 'not-in-context')
  })

  it('branching to before a compaction undoes it', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'old')
    const kept = await user(session, 'kept')
    await session.appendCompaction('sum', kept, 1)
    await session.branch(kept)
    assert.deepEqual(await said(session), ['user: old', 'user: kept'])
    await session.branch(first)
    assert.deepEqual(await said(session), ['user: old'])
  })

  it('the context of an earlier entry can be read without moving the leaf', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    await user(session, 'two')
    const { messages } = await session.getContext({ leafId: first })
    assert.deepEqual(
      messages.map(({ entryId }) => entryId),
      [first],
    )
    assert.deepEqual((await session.getContext({ leafId: null })).messages, [])
  })

  it('verify finds no damage in what a store wrote', async ({ store }) => {
    const session = await store.create()
    await user(session, 'one')
    const report = await store.verify(session.id)
    assert.equal(report.isIntact, true)
    assert.equal(report.lines, session.head.seq)
  })
}

function lists(it: It): void {
  it('sessions are listed newest first, in pages', async ({ store }) => {
    const ids: string[] = []
    for (let index = 0; index < 5; index++) {
      await using session = await store.create({ name: `session ${index}` })
      await session.append({ type: 'message', message: { role: 'user', content: [text(`words ${index}`)] } })
      ids.push(session.id)
    }
    const seen: string[] = []
    let cursor: string | undefined
    for (let pages = 0; pages < 4; pages++) {
      const page = await store.list({ limit: 2, ...(cursor !== undefined && { cursor }) })
      seen.push(...page.sessions.map(({ id }) => id))
      cursor = page.cursor
      if (cursor === undefined) break
    }
    assert.deepEqual(seen.toSorted(), ids.toSorted())
    assert.equal((await store.list({ text: 'session 3' })).sessions.length, 1)
    assert.equal((await store.list()).sessions[0]?.messageCount, 1)
  })

  it('the most recent session can be continued, and an empty store rejects', async ({ store }) => {
    await rejects(store.continueRecent(), 'session-not-found')
    await using session = await store.create()
    await user(session, 'only')
    await using again = await store.continueRecent()
    assert.equal(again.id, session.id)
  })

  it('search finds the entry that contains the words', async ({ store }) => {
    await using session = await store.create()
    await user(session, 'the quick brown fox')
    const id = await user(session, 'jumps over the lazy dog')
    const hits = await store.search({ text: 'lazy' })
    assert.deepEqual(
      hits.map(({ entryId, sessionId }) => [entryId, sessionId]),
      [[id, session.id]],
    )
    assert.deepEqual(await store.search({ text: 'absent' }), [])
    assert.deepEqual(await store.search({ text: ' ' }), [])
  })

  it('pages of a search fit together, and filters select by session, role and time', async ({ store }) => {
    const expected: string[] = []
    const sessions = [await store.create(), await store.create()]
    for (let index = 0; index < 24; index++) {
      const session = sessions[index % 2]
      if (!session) continue
      expected.push(await user(session, `Needle number ${index}`))
      expected.push(await session.appendMessage('assistant', [text(`a needle for ${index}`)]))
    }
    const [first, second] = sessions
    if (!first || !second) throw new Error('There are two sessions.')
    const ids = (hits: readonly SearchHit[]): string[] => hits.map(({ entryId }) => entryId)
    const all = await store.search({ text: 'needle', limit: 100 })
    assert.deepEqual(ids(all).toSorted(), expected.toSorted())
    for (const limit of [1, 7, 48, 100]) {
      const paged: SearchHit[] = []
      for (let pages = 0; pages <= expected.length; pages++) {
        const last = paged.at(-1)
        const page = await store.search({ text: 'needle', limit, ...(last && { after: last }) })
        paged.push(...page)
        if (page.length < limit) break
      }
      assert.deepEqual(paged, all)
    }
    for (const { snippet, matches } of all) {
      assert.deepEqual(
        matches.map(({ start, end }) => snippet.slice(start, end).toLowerCase()),
        ['needle'],
      )
    }
    const only = async (query: Omit<SearchQuery, 'text'>): Promise<string[]> =>
      ids(await store.search({ text: 'needle', limit: 100, ...query }))
    const which = (isWanted: (hit: SearchHit) => boolean): string[] => ids(all.filter(isWanted))
    assert.deepEqual(
      await only({ roles: ['assistant'] }),
      which(({ role }) => role === 'assistant'),
    )
    assert.deepEqual(await only({ roles: ['compaction'] }), [])
    assert.deepEqual(
      await only({ among: new Set([second.id]) }),
      which(({ sessionId }) => sessionId === second.id),
    )
    const middle = all[20]?.timestamp ?? ''
    assert.deepEqual(
      await only({ since: middle }),
      which(({ timestamp }) => timestamp >= middle),
    )
    assert.deepEqual(
      await only({ until: middle }),
      which(({ timestamp }) => timestamp < middle),
    )
    const both = await only({ roles: ['user'], limit: 3, ...(all[10] && { after: all[10] }) })
    assert.deepEqual(both, ids(all.slice(11).filter(({ role }) => role === 'user')).slice(0, 3))
    for (const session of sessions) await session.close()
  })

  it('archived and deleted sessions leave the list and can be restored', async ({ store }) => {
    const session = await store.create()
    await user(session, 'keep me')
    await rejects(store.delete(session.id), 'session-owned')
    await session.close()
    await store.archive(session.id)
    await rejects(store.open(session.id), 'session-not-found')
    assert.equal((await store.list({ place: 'archive' })).sessions[0]?.id, session.id)
    assert.deepEqual(await store.search({ text: 'keep' }), [])
    const found = async (place: 'archive' | 'trash'): Promise<string[]> =>
      (await store.search({ text: 'keep', place })).map(({ sessionId }) => sessionId)
    assert.deepEqual([await found('archive'), await found('trash')], [[session.id], []])
    await rejects(store.open(session.id, { place: 'trash' }), 'session-not-found')
    const archived = await store.open(session.id, { place: 'archive' })
    assert.deepEqual(await said(archived), ['user: keep me'])
    await rejects(user(archived, 'more'), 'read-only')
    await archived.close()
    await store.delete(session.id)
    assert.deepEqual([await found('archive'), await found('trash')], [[], [session.id]])
    assert.equal((await store.list()).sessions.length, 0)
    assert.equal((await store.list({ place: 'trash' })).sessions[0]?.id, session.id)
    await store.restore(session.id)
    await using again = await store.open(session.id)
    assert.deepEqual(await said(again), ['user: keep me'])
    assert.deepEqual([await found('archive'), await found('trash')], [[], []])
    await rejects(store.archive('nothing'), 'session-not-found')
  })

  it('of several concurrent creates of one session one succeeds, and the others reject with session-exists', async ({
    store,
  }) => {
    const ended = await Promise.allSettled(Array.from({ length: 4 }, () => store.create({ id: 'same' })))
    const codes = ended.map((end) => (end.status === 'fulfilled' ? 'made' : (end.reason as SessionError).code))
    assert.deepEqual(codes.sort(), ['made', 'session-exists', 'session-exists', 'session-exists'])
    const { sessions } = await store.list()
    assert.deepEqual(
      sessions.map(({ id }) => id),
      ['same'],
    )
  })

  it('a session that is missing, exists already or has an invalid id is rejected', async ({ store }) => {
    await rejects(store.open('missing'), 'session-not-found')
    await rejects(store.open('../escape'), 'invalid-id')
    await using session = await store.create({ id: 'chosen' })
    await rejects(store.create({ id: session.id }), 'session-exists')
    await rejects(store.create({ id: 'a/b' }), 'invalid-id')
  })
}

function rows(it: It): void {
  it('the session with the newest message is listed first, also across pages', async ({ port }) => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z')
    const store = new SessionStore(port, { now: () => new Date(nowMs) })
    const sessions = await Promise.all(['e', 'b', 'd', 'a', 'c'].map((id) => store.create({ id })))
    // The last two messages have the same time; then the id decides.
    for (const [index, minute] of [3, 1, 5, 2, 5].entries()) {
      nowMs = Date.parse(`2026-01-01T01:0${minute}:00Z`)
      await user(sessions[index] as Session, `at ${minute}`)
    }
    for (const session of sessions) await session.close()
    const expected = ['d', 'c', 'e', 'a', 'b']
    for (const limit of [1, 2, 5, 100]) {
      const seen: string[] = []
      let cursor: string | undefined
      for (let pages = 0; pages < 6; pages++) {
        const page = await store.list({ limit, ...(cursor !== undefined && { cursor }) })
        assert.ok(page.sessions.length <= limit)
        seen.push(...page.sessions.map(({ id }) => id))
        cursor = page.cursor
        if (cursor === undefined) break
      }
      assert.deepEqual(seen, expected)
    }
    assert.equal((await store.list({ limit: 1 })).sessions[0]?.modified, '2026-01-01T01:05:00.000Z')
  })

  it('a list is filtered by folder, status, text and visibility, before it is cut into pages', async ({ store }) => {
    const make = async (id: string, cwd: string, name: string): Promise<Session> => {
      const session = await store.create({ id, cwd, name })
      await user(session, `first words of ${id}`)
      return session
    }
    const permissionRequest = { requestId: 'p', tool: 'bash', title: 'run', options: [] }
    const asking = await make('asking', '/home/someone/One', 'Alpha 50%')
    await asking.append({ type: 'permission_request', permissionRequest })
    const ended = await make('ended', '/home/someone/two', 'Beta_x')
    await ended.append({ type: 'session_end', sessionEnd: { reason: 'done' } })
    const idle = await make('idle', '/home/someone/two', 'Gamma')
    const ids = async (query: SessionQuery): Promise<string[]> =>
      (await store.list(query)).sessions.map(({ id }) => id).toSorted()
    for (const isOpen of [true, false]) {
      if (!isOpen) for (const session of [asking, ended, idle]) await session.close()
      assert.deepEqual(await ids({ cwd: '/home/someone/two' }), ['ended', 'idle'])
      assert.deepEqual(await ids({ cwd: '/home/someone/One', limit: 1 }), ['asking'])
      assert.deepEqual(await ids({ cwd: '/home/someone' }), [])
      assert.deepEqual(await ids({ status: 'requires_action' }), ['asking'])
      assert.deepEqual(await ids({ status: 'ended' }), ['ended'])
      assert.deepEqual(await ids({ status: 'ended', cwd: '/home/someone/One' }), [])
      assert.deepEqual(await ids({ text: 'ALPHA' }), ['asking'])
      assert.deepEqual(await ids({ text: 'words of I' }), ['idle'])
      assert.deepEqual(await ids({ text: 'someone/TWO' }), ['ended', 'idle'])
      assert.deepEqual(await ids({ text: '50%' }), ['asking'])
      assert.deepEqual(await ids({ text: 'a_x' }), ['ended'])
      assert.deepEqual(await ids({ text: 'G%a' }), [])
      assert.deepEqual(await ids({ isVisible: (cwd) => cwd !== '/home/someone/two' }), ['asking'])
      assert.deepEqual(await ids({ isVisible: (cwd) => cwd === '/home/someone/two', limit: 2 }), ['ended', 'idle'])
      assert.deepEqual(await ids({ place: 'archive' }), [])
    }
  })

  it('a row of the list shows the newest line, also while the session is open', async ({ store, reopen }) => {
    await using session = await store.create({ cwd: '/here', name: 'First' })
    const other = await reopen()
    for (let count = 1; count <= 3; count++) {
      await user(session, `message ${count}`)
      await session.appendSessionInfo(`Name ${count}`)
      for (const each of [store, other]) {
        const [row] = (await each.list()).sessions
        assert.deepEqual(
          [row?.messageCount, row?.name, row?.firstText, row?.cwd],
          [count, `Name ${count}`, 'message 1', '/here'],
        )
      }
    }
    await session.submit('waiting')
    assert.equal((await other.list()).sessions[0]?.queueLength, 1)
  })
}

function searches(it: It): void {
  it('a search finds entries that contain every word, in any order, case and script', async ({ store }) => {
    await using session = await store.create()
    const fox = await user(session, 'The quick brown Fox jumps over 13 lazy dogs, don\u2019t_stop at 50% of C:\\temp')
    const tokyo = await assistant(session, '東京都の天気は晴れです。明日は雨')
    const other = await user(session, 'The slow brown bear sleeps')
    await toolResult(session, 'none', 'a result that mentions quicksilver')
    const found = async (text: string): Promise<string[]> =>
      (await store.search({ text })).map(({ entryId }) => entryId).toSorted()
    const wanted: [string, string[]][] = [
      ['brown', [fox, other]],
      ['brown fox', [fox]],
      ['FOX the', [fox]],
      ['bear quick', []],
      ['umps', [fox]],
      ['leep brow', [other]],
      ['fo', [fox]],
      ['t_stop', [fox]],
      ['50% C:\\temp', [fox]],
      ['5%0', []],
      ['br_wn', []],
      ['天気', [tokyo]],
      ['京都の天', [tokyo]],
      ['明日 東京', [tokyo]],
      ['雨', [tokyo]],
      ['気天', []],
      ['13', [fox]],
    ]
    for (const [text, expected] of wanted) assert.deepEqual([text, await found(text)], [text, expected.toSorted()])
    assert.deepEqual(
      (await store.search({ text: 'quicksilver' })).map(({ role }) => role),
      ['tool'],
    )
    const [hit] = await store.search({ text: 'lazy 13' })
    assert.deepEqual(
      hit?.matches.map(({ start, end }) => hit.snippet.slice(start, end)),
      ['13', 'lazy'],
    )
  })

  it('a search returns the newest hits first, at most as many as the limit', async ({ port }) => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z')
    const store = new SessionStore(port, { now: () => new Date(nowMs) })
    const [first, second] = [await store.create({ id: 'a' }), await store.create({ id: 'b' })]
    const times: string[] = []
    for (let index = 0; index < 60; index++) {
      nowMs = Date.parse('2026-01-01T00:00:00Z') + ((index * 37) % 60) * 1000
      await user(index % 2 ? first : second, `needle ${index}`)
      times.push(new Date(nowMs).toISOString())
    }
    const newest = times.toSorted().toReversed()
    const timesOf = async (limit?: number): Promise<string[]> =>
      (await store.search({ text: 'needle', ...(limit !== undefined && { limit }) })).map(({ timestamp }) => timestamp)
    assert.deepEqual(await timesOf(), newest.slice(0, 50))
    for (const limit of [1, 3, 60, 100]) assert.deepEqual(await timesOf(limit), newest.slice(0, limit))
    const [since, until] = [newest[40] as string, newest[10] as string]
    const between = await store.search({ text: 'needle', since, until })
    assert.deepEqual(
      between.map(({ timestamp }) => timestamp),
      newest.slice(11, 41),
    )
    await first.close()
    await second.close()
  })

  it('a search finds what was written after an earlier search, in every store on the sessions', async ({
    store,
    reopen,
  }) => {
    await using session = await store.create()
    const other = await reopen()
    for (let count = 1; count <= 3; count++) {
      await user(session, `needle ${count}`)
      for (const each of [store, other]) assert.equal((await each.search({ text: 'needle' })).length, count)
    }
    const kept = await user(session, 'kept')
    await session.appendCompaction('a summary with a needle', kept, 1)
    const [hit] = await other.search({ text: 'summary needle' })
    assert.equal(hit?.role, 'compaction')
  })
}

function sizes(it: It): void {
  it('the stored bytes are those of lines and blobs in all places, until they are erased', async ({
    store,
    reopen,
  }) => {
    const before = await store.storedBytes()
    const session = await store.create({ id: 'large' })
    const created = await store.storedBytes()
    assert.ok(created > before)
    await user(session, 'é'.repeat(10_000))
    const withLine = await store.storedBytes()
    assert.ok(withLine >= created + 20_000, `${withLine} bytes after 20,000 more than ${created}`)
    await session.putBlob(new Uint8Array(30_000))
    await user(session, 'it is there')
    const withBlob = await store.storedBytes()
    assert.ok(withBlob >= withLine + 30_000, `${withBlob} bytes after 30,000 more than ${withLine}`)
    await session.close()
    for (const move of ['archive', 'restore', 'delete'] as const) {
      await store[move](session.id)
      assert.ok((await (await reopen()).storedBytes()) >= created + 50_000)
    }
    await store.erase(session.id)
    assert.equal(await store.storedBytes(), before)
  })

  it('the stored bytes are those of one tenant and of visible folders', async ({ store }) => {
    const [one, other] = [await store.create({ cwd: '/one' }), await store.create({ cwd: '/other' })]
    await user(one, 'x'.repeat(5000))
    await user(other, 'x'.repeat(20_000))
    for (const session of [one, other]) await session.close()
    assert.equal(await store.withScope({ tenant: 'other' }).storedBytes(), 0)
    assert.equal(await store.restrictedTo(() => false).storedBytes(), 0)
    const visible = await store.restrictedTo((cwd) => cwd === '/one').storedBytes()
    assert.ok(visible >= 5000 && visible < 20_000, `${visible} bytes`)
    assert.ok((await store.storedBytes()) >= visible + 20_000)
  })
}

function erasing(it: It): void {
  it('an erased session is gone from every place, and its id is free', async ({ store, reopen }) => {
    for (const leave of ['close', 'archive', 'delete'] as const) {
      const session = await store.create({ id: 'chosen', name: 'Erase me' })
      await user(session, 'forget this')
      await session.putBlob(new Uint8Array([1, 2, 3]))
      assert.equal((await store.search({ text: 'forget' })).length, 1)
      await session.close()
      if (leave !== 'close') await store[leave](session.id)
      assert.deepEqual(await store.erase(session.id), { forks: [] })
      for (const each of [store, await reopen()]) {
        await rejects(each.open(session.id), 'session-not-found')
        await rejects(each.restore(session.id), 'session-not-found')
        await rejects(each.erase(session.id), 'session-not-found')
        for (const place of ['active', 'archive', 'trash'] as const) {
          assert.deepEqual((await each.list({ place })).sessions, [])
        }
        assert.deepEqual(await each.search({ text: 'forget' }), [])
      }
    }
    await using again = await store.create({ id: 'chosen' })
    assert.deepEqual(await said(again), [])
  })

  it('erasing an open session closes its handles, and they write nothing more', async ({ store }) => {
    const session = await store.create()
    const other = await store.open(session.id)
    await user(session, 'one')
    await session.erase()
    await rejects(user(session, 'two'), 'session-closed')
    await rejects(user(other, 'two'), 'session-closed')
    await rejects(other.putBlob(new Uint8Array([1])), 'session-closed')
    await rejects(store.open(session.id), 'session-not-found')
    const again = await store.create({ id: session.id })
    await other.close()
    await user(again, 'three')
    assert.deepEqual(await said(again), ['user: three'])
    await again.close()
  })

  it('a session that another process writes is not erased', async ({ store, reopen }) => {
    await using session = await store.create()
    await user(session, 'mine')
    await rejects((await reopen()).erase(session.id), 'session-owned')
    await user(session, 'still mine')
    assert.deepEqual(await said(session), ['user: mine', 'user: still mine'])
  })

  it('erasing lists the copies of a session in all places, and keeps them', async ({ store }) => {
    const session = await store.create()
    const blob = await session.putBlob(new Uint8Array([4, 5, 6]))
    const source = { type: 'blob' as const, mediaType: 'image/png', ...blob }
    await session.appendMessage('user', [{ type: 'image', image: { source } }, text('shared')])
    const fork = await store.forkFrom(session.id)
    const second = await store.forkFrom(fork.id)
    const imported = await store.unpack(store.pack(session.id))
    await (await store.create({ parentSession: 'another' })).close()
    await second.close()
    await imported.close()
    await store.archive(second.id)
    await store.delete(imported.id)
    const { forks } = await session.erase()
    assert.deepEqual(forks.toSorted(), [fork.id, second.id, imported.id].toSorted())
    assert.deepEqual(await fork.getBlob(blob.sha256), new Uint8Array([4, 5, 6]))
    await fork.close()
    await store.restore(second.id)
    await using again = await store.open(second.id)
    assert.equal((await again.getContext()).messages.length, 1)
  })

  it('a store erases only the sessions that it contains', async ({ store }) => {
    const session = await store.create({ cwd: '/home/someone/hidden' })
    await session.close()
    await rejects(store.erase('missing'), 'session-not-found')
    await rejects(store.erase('../escape'), 'invalid-id')
    await rejects(store.withScope({ tenant: 'other' }).erase(session.id), 'session-not-found')
    await rejects(store.restrictedTo(() => false).erase(session.id), 'session-not-found')
    await (await store.open(session.id)).close()
    await store.restrictedTo((cwd) => cwd === '/home/someone/hidden').erase(session.id)
    await rejects(store.open(session.id), 'session-not-found')
  })
}

function inbox(it: It): void {
  it('delivering a queued message and removing it from the inbox are one line', async ({ store }) => {
    const session = await store.create()
    const waiting = await session.submit('later')
    const before = session.head.seq
    await session.deliver(waiting.id)
    assert.equal(session.head.seq, before + 1)
    assert.deepEqual(session.inbox.messages, [])
    assert.deepEqual(await said(session), ['user: later'])
    await rejects(session.deliver(waiting.id), 'message-not-found')
  })

  it('queued messages are edited, moved, held, removed and cleared, also after a restart', async ({
    store,
    reopen,
  }) => {
    const session = await store.create()
    const one = await session.submit('one')
    const two = await session.submit('two')
    const three = await session.submit('three', { delivery: 'steer', imageIds: ['i1'], clientId: 'c1' })
    await session.changeInbox({ action: 'move', id: two.id, beforeId: one.id })
    await session.changeInbox({ action: 'edit', id: one.id, message: 'uno' })
    await session.changeInbox({ action: 'hold', id: two.id })
    assert.equal(session.nextWaiting('follow-up')?.id, one.id)
    assert.equal(session.nextWaiting('steer')?.id, three.id)
    await session.changeInbox({ action: 'hold', reason: 'wait' })
    assert.equal(session.nextWaiting('follow-up'), undefined)
    await session.close()
    const again = await (await reopen()).open(session.id)
    assert.deepEqual(again.inbox.hold, { reason: 'wait' })
    assert.deepEqual(
      again.inbox.messages.map(({ message, held }) => [message, held]),
      [
        ['two', true],
        ['uno', false],
        ['three', false],
      ],
    )
    await again.changeInbox({ action: 'release' })
    await again.changeInbox({ action: 'release', id: two.id })
    assert.equal(again.nextWaiting('follow-up')?.id, two.id)
    await again.changeInbox({ action: 'remove', id: two.id })
    await rejects(again.changeInbox({ action: 'remove', id: two.id }), 'message-not-found')
    await again.changeInbox({ action: 'clear' })
    assert.deepEqual(again.inbox.messages, [])
    await again.close()
  })

  it('independent queue objects share one queue and lose nothing', async ({ store }) => {
    await using session = await store.create()
    const added = await Promise.all(
      Array.from({ length: 50 }, (_, index) => store.queue(session.id).add(`message ${index}`, null, 'client')),
    )
    const listed = await store.queue(session.id).list()
    assert.deepEqual(listed, added)
    assert.deepEqual(
      listed.map(({ id }) => id).toSorted(),
      listed.map(({ id }) => id),
    )
    const popped = await Promise.all(Array.from({ length: 50 }, () => store.queue(session.id).pop()))
    assert.deepEqual(
      popped.map(({ id }) => id).toSorted(),
      added.map(({ id }) => id),
    )
    await rejects(store.queue(session.id).pop(), 'queue-empty')
    await rejects(store.queue(session.id).get('q-0-00000000'), 'message-not-found')
    await rejects(store.queue(session.id).remove('q-0-00000000'), 'message-not-found')
  })

  it('after a run that did not complete the queue is held until a prompt', async ({ store }) => {
    await using session = await store.create()
    await session.submit('next')
    await session.append({ type: 'run_start', runStart: { runId: 'r', leafId: null } })
    await session.append({ type: 'run_end', runEnd: { runId: 'r', outcome: 'failed' } })
    assert.equal(session.nextWaiting('follow-up'), undefined)
    await user(session, 'go on')
    assert.equal(session.nextWaiting('follow-up')?.message, 'next')
  })
}

function ownership(it: It): void {
  it('a closed store neither creates nor opens sessions', async ({ store }) => {
    const { id } = await store.create()
    await store.close()
    await rejects(store.create(), 'session-closed')
    await rejects(store.open(id), 'session-closed')
    await rejects(store.open(id, { readOnly: true }), 'session-closed')
  })

  it('a second opener in the same process shares the session until the last one closes it', async ({ store }) => {
    const first = await store.create()
    const second = await store.open(first.id)
    await first.close()
    await user(second, 'still open')
    await second.close()
    await rejects(user(second, 'late'), 'session-closed')
  })

  it('a session that another writer holds is read-only and names its owner', async ({ store, reopen }) => {
    await using session = await store.create()
    await user(session, 'mine')
    const other = await (await reopen()).open(session.id)
    assert.notEqual(other.readOnlyReason, undefined)
    assert.notEqual(other.owner, undefined)
    assert.deepEqual(await said(other), ['user: mine'])
    await rejects(user(other, 'not mine'), 'read-only')
    await user(session, 'more')
    await other.refresh()
    assert.deepEqual(await said(other), ['user: mine', 'user: more'])
    await other.close()
  })

  it('each writer has a higher term than the previous one', async ({ store, reopen }) => {
    const terms: number[] = []
    for (let round = 0; round < 3; round++) {
      const fresh = round === 0 ? store : await reopen()
      const session = round === 0 ? await fresh.create({ id: 'terms' }) : await fresh.open('terms')
      await user(session, `round ${round}`)
      for (const line of await linesOf(session)) {
        const parsed = JSON.parse(line.text) as { writer?: { term: number } }
        if (parsed.writer && round === 2) terms.push(parsed.writer.term)
      }
      await session.close()
    }
    assert.equal(new Set(terms).size, 3)
    assert.deepEqual(
      terms,
      terms.toSorted((left, right) => left - right),
    )
  })

  it('a writer that detects another one stops and acknowledges nothing', async ({ store, reopen, writeBehindBack }) => {
    const session = await store.create()
    const mine = await user(session, 'mine')
    await writeBehindBack(session.id)
    await rejects(user(session, 'lost race'), 'fenced')
    await rejects(user(session, 'again'), 'fenced')
    await session.close()
    const again = await (await reopen()).open(session.id)
    assert.equal((await again.getEntry(mine)).id, mine)
    await again.close()
  })

  it('a client command that took effect is remembered after a restart', async ({ store, reopen }) => {
    const session = await store.create()
    await session.appendMessage('user', [text('once')], { cause: { cmd: 'command-1', client: 'c' } })
    const seq = session.effectOf('command-1')
    assert.equal(seq, session.head.seq)
    await session.close()
    const again = await (await reopen()).open(session.id)
    assert.equal(again.effectOf('command-1'), seq)
    assert.equal(again.effectOf('command-2'), undefined)
    await again.close()
  })
}

function scopes(it: It): void {
  it('scopes never see each other', async ({ store }) => {
    const other = store.withScope({ tenant: 'other' })
    await using mine = await store.create({ id: 'same' })
    await user(mine, 'mine')
    assert.deepEqual((await other.list()).sessions, [])
    assert.deepEqual(await other.search({ text: 'mine' }), [])
    await rejects(other.open('same'), 'session-not-found')
    await using theirs = await other.create({ id: 'same' })
    await user(theirs, 'theirs')
    assert.deepEqual(await said(mine), ['user: mine'])
    assert.deepEqual(await said(theirs), ['user: theirs'])
    assert.equal((await store.list()).sessions.length, 1)
  })
}

function blobs(it: It): void {
  it('a large value goes to a blob, and is restored on read', async ({ store, reopen }) => {
    const session = await store.create()
    const words = 'große Wörter 漢字 🙂 '.repeat(20_000)
    const pending = [user(session, 'before'), user(session, words), user(session, 'after')]
    await Promise.all(pending)
    assert.deepEqual(await said(session), ['user: before', `user: ${words}`, 'user: after'])
    for (const line of await linesOf(session)) assert.ok(Buffer.byteLength(line.text) < 192 * 1024)
    await session.close()
    const again = await (await reopen()).open(session.id)
    assert.deepEqual((await said(again))[1], `user: ${words}`)
    await again.close()
  })

  it('a large image becomes a reference to its bytes', async ({ store }) => {
    await using session = await store.create()
    const bytes = Buffer.alloc(300_000, 7)
    const source = { type: 'base64' as const, mediaType: 'image/png', data: bytes.toString('base64') }
    const id = await session.appendMessage('user', [{ type: 'image', image: { source } }])
    const entry = await session.getEntry(id)
    assert.ok(entry.type === 'message')
    const block = entry.message.content[0]
    assert.ok(block?.type === 'image' && block.image.source.type === 'blob')
    assert.deepEqual(Buffer.from(await session.getBlob(block.image.source.sha256)), bytes)
  })

  it('the same bytes are one blob, and a missing blob is named in the error', async ({ store }) => {
    await using session = await store.create()
    const bytes = new TextEncoder().encode('bytes')
    assert.deepEqual(await session.putBlob(bytes), await session.putBlob(bytes))
    await rejects(session.getBlob('0'.repeat(64)), 'blob-missing')
    await rejects(session.getBlob('../lock'), 'blob-missing')
  })
}

function copies(it: It): void {
  it('a branched export has the entries of one path with their ids, labels and blobs', async ({ store }) => {
    await using session = await store.create({ cwd: '/somewhere', name: 'Source' })
    const words = 'x'.repeat(300_000)
    const first = await user(session, words)
    const second = await assistant(session, 'two')
    await session.branch(first)
    await user(session, 'elsewhere')
    await session.setLabel(first, 'start')
    const id = await session.createBranchedSession(second)
    await using copy = await store.open(id)
    assert.deepEqual(await said(copy), [`user: ${words}`, 'assistant: two'])
    assert.equal(copy.leafId, second)
    assert.equal(copy.header?.parentSession, session.id)
    assert.equal(copy.header?.parentEntry, second)
    assert.equal(copy.header?.cwd, '/somewhere')
    assert.equal(copy.name, 'Source')
    assert.deepEqual([...copy.getLabels()], [[first, 'start']])
    assert.equal((await store.verify(id)).isIntact, true)
  })

  it('a fork has all branches and the same leaf, and no run state', async ({ store }) => {
    const session = await store.create()
    const first = await user(session, 'one')
    await assistant(session, 'two')
    await session.branch(first)
    await session.submit('waiting')
    await session.append({ type: 'run_start', runStart: { runId: 'r', leafId: first } })
    await session.close()
    await using fork = await store.forkFrom(session.id, { name: 'Fork' })
    assert.equal(fork.leafId, first)
    const [root] = await fork.getTree()
    assert.equal(root?.children.filter(({ entry }) => entry.type === 'message').length, 1)
    assert.deepEqual(fork.inbox.messages, [])
    assert.equal(fork.openRun, null)
    assert.equal(fork.name, 'Fork')
  })

  it('a pack is one file that becomes a new session with new ids and nothing to resume', async ({ store }) => {
    await using session = await store.create({ name: 'Packed' })
    const words = 'large '.repeat(60_000)
    const first = await user(session, words)
    const left = await assistant(session, 'left')
    await session.branchWithSummary(first, 'summary')
    await session.setLabel(left, 'label')
    await session.submit('waiting')
    await session.append({
      type: 'permission_request',
      permissionRequest: { requestId: 'p', tool: 'bash', title: 'run', options: [] },
    })
    await using copy = await store.unpack(store.pack(session.id))
    assert.deepEqual(await said(copy), await said(session))
    assert.notEqual(copy.leafId, session.leafId)
    assert.equal(copy.name, 'Packed')
    assert.deepEqual([...copy.getLabels().values()], ['label'])
    assert.deepEqual(copy.inbox.messages, [])
    assert.deepEqual(copy.pendingPermissions, [])
    assert.equal(copy.header?.parentSession, session.id)
    assert.equal((await store.verify(copy.id)).isIntact, true)
  })

  it('a truncated or changed pack is rejected and leaves no session', async ({ store }) => {
    await using session = await store.create()
    await user(session, 'large '.repeat(60_000))
    const chunks: Uint8Array[] = []
    for await (const chunk of store.pack(session.id)) chunks.push(chunk)
    const whole = Buffer.concat(chunks)
    const blobAt = whole.indexOf('large large')
    const broken: Buffer[] = [
      whole.subarray(0, 10),
      whole.subarray(0, blobAt + 100),
      whole.subarray(0, whole.length - 5),
      Buffer.concat([whole, Buffer.from('more')]),
      Buffer.from(whole).fill('L', blobAt, blobAt + 1),
      Buffer.from('{"type":"tapetree_pack","version":99,"session":"x"}\n'),
      Buffer.from('{"type":"something"}\n'),
    ]
    for (const bytes of broken) await rejects(store.unpack(inChunks(bytes)), 'invalid-pack')
    assert.equal((await store.list()).sessions.length, 1)
  })
}

async function* inChunks(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000)
}

async function linesOf(session: Session, after = 0): Promise<{ seq: number; text: string }[]> {
  const lines: { seq: number; text: string }[] = []
  for await (const line of session.lines({ after })) {
    assert.equal(line.type, 'line')
    if (line.type === 'line') lines.push({ seq: line.seq, text: line.text })
  }
  return lines
}
