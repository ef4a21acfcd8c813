// A contract is worth as much as the broken stores that it rejects. Each row below is a memory store with one fault.
import { describe, expect, test } from 'vitest'
import { SessionError } from '../errors.ts'
import { sealLine, type SealedLine } from '../line/seal-line.ts'
import {
  localScope,
  type AppendOptions,
  type AppendResult,
  type LogStore,
  type Scope,
  type WritableLog,
} from '../log/log-store.ts'
import { SessionStore } from '../store/session-store.ts'
import type { SearchHit, SearchQuery, SessionInfo, SessionQuery } from '../state/session-info.ts'
import { MemoryLogStore } from '../stores/memory/memory-store.ts'
import { withDeadline } from '../util/deadline.ts'
import { changedPort, type PortChange } from './changed-port.ts'
import type { StoreUnderTest } from './port-contract.ts'
import { testSessionStore } from './store-contract.ts'

/** What the store does wrong, and how. Each test gets a new store, and so a new change. */
type Mutant = [fault: string, change: (port: LogStore) => PortChange]

const fencing: Mutant[] = [
  ['ignores the term', () => onAppend((append) => obeying(append, /term is now (\d+)/, (term) => ({ term })))],
  ['ignores the head', () => onAppend((append) => obeying(append, /line is now (\d+)/, (head) => ({ head })))],
  [
    'accepts a later term',
    () =>
      onAppend((append) => (lines, options) => {
        const earlier = append(lines, { ...options, term: options.term - 1 })
        return earlier.type === 'appended' ? earlier : append(lines, options)
      }),
  ],
  [
    'accepts a batch that leaves a gap',
    () =>
      onAppend((append) => (lines, options) => {
        const result = append(lines, options)
        return result.type === 'appended' ? result : append(lines, { ...options, head: options.head - 1 })
      }),
  ],
  ['rejects every batch', () => onAppend(() => () => ({ type: 'fenced', reason: 'always' }))],
  [
    'stores the first line of a rejected batch',
    () =>
      onAppend((append) => (lines, options) => {
        const result = append(lines, options)
        if (result.type === 'fenced') {
          obeying(append, /line is now (\d+)/, (head) => ({ head }))(lines.slice(0, 1), options)
        }
        return result
      }),
  ],
  [
    'stores a batch without its last line',
    () =>
      onAppend((append) => (lines, options) => {
        const result = append(lines.length > 1 ? lines.slice(0, -1) : lines, options)
        return result.type === 'appended'
          ? { ...result, positions: [...result.positions, ...result.positions.slice(-1)].slice(0, lines.length) }
          : result
      }),
  ],
  ['stores a batch in reverse', () => onAppend((append) => (lines, options) => append(lines.toReversed(), options))],
  [
    'checks the head, and writes a moment later',
    () => ({
      log: (log) => ({
        append: async (lines, options) => {
          const head = await countOf(log)
          if (head !== options.head) return log.append(lines, options)
          await pause()
          const write = obeying(log.append.bind(log) as Append, /line is now (\d+)/, (now) => ({ head: now }))
          return write(lines, options)
        },
      }),
    }),
  ],
  [
    'says that a stored batch failed',
    () =>
      onAppend((append) => (lines, options) => {
        append(lines, options)
        return { type: 'failed', cause: 'nothing', final: false }
      }),
  ],
  ['gives all lines of a batch the first position', () => onPositions(([first]) => (first ? () => first : undefined))],
  [
    'names the line itself as the next one',
    () => onPositions(() => (position) => ({ ...position, next: position.at })),
  ],
  [
    'names the line after the next one as the next one',
    () => onPositions(() => (position) => ({ ...position, next: position.next + 1 })),
  ],
  [
    'counts characters instead of bytes',
    () =>
      onPositions(() => (position, { text }) => ({ ...position, size: text.length })),
  ],
  [
    'changes the text of a line',
    () =>
      onAppend(
        (append) => (lines, options) =>
          append(
            lines.map((line) => ({ ...line, text: line.text.normalize('NFD').replaceAll('\u2028', ' ') })),
            options,
          ),
      ),
  ],
]

const claims: Mutant[] = [
  [
    'lets everybody claim',
    () => ({ store: (port) => ({ claim: (scope, id) => port.claim(scope, id, { insist: true }) }) }),
  ],
  [
    'checks for an owner, and claims a moment later',
    () => ({
      store: (port) => ({
        claim: async (scope, id, options) => {
          const log = await port.open(scope, id)
          if (!options?.insist && (await log.owner?.())) return { type: 'owned', owner: { reason: 'Taken.' } }
          await pause()
          return port.claim(scope, id, { insist: true })
        },
      }),
    }),
  ],
  [
    'gives every takeover the same term',
    () => ({
      log: (log) => ({
        term: log.term === undefined ? undefined : 1,
        append: obeying(log.append.bind(log) as Append, /term is now (\d+)/, (term) => ({ term })),
      }),
    }),
  ],
  [
    'never tells a writer that it was taken over',
    () => ({ log: (log) => (log.lost ? { lost: new AbortController().signal } : {}) }),
  ],
  [
    'tells every writer that it was taken over',
    () => ({ log: (log) => (log.lost ? { lost: AbortSignal.abort(new SessionError('fenced', 'Taken.')) } : {}) }),
  ],
  ['throws on reclaim', () => ({ log: () => ({ reclaim: () => Promise.reject(new Error('Not implemented.')) }) })],
  [
    'refuses every reclaim',
    () => ({ log: () => ({ reclaim: async () => ({ type: 'owned', owner: { reason: 'No.' } }) }) }),
  ],
  ['keeps the term on reclaim', () => ({ log: (log) => ({ reclaim: async () => ({ type: 'claimed', log }) }) })],
  [
    'reclaims after a takeover',
    (port) => ({
      log: (_, { scope, sessionId }) => ({ reclaim: () => port.claim(scope, sessionId, { insist: true }) }),
    }),
  ],
  ['keeps a closed session claimed', () => ({ log: () => ({ close: async () => undefined }) })],
  [
    'frees a session when its earlier writer closes',
    (port) => ({
      log: (log, { scope, sessionId }) => ({
        close: async () => {
          await log.close()
          if (log.term === undefined) return
          const claim = await port.claim(scope, sessionId, { insist: true }).catch(() => undefined)
          if (claim?.type === 'claimed') await claim.log.close()
        },
      }),
    }),
  ],
  ['always names an owner', () => ({ log: () => ({ owner: async () => ({ reason: 'Somebody.' }) }) })],
]

const reads: Mutant[] = [
  ['stops reading after 500 lines', () => onLines((lines) => lines.slice(0, 500))],
  ['loses the first line after 1,024', () => onLines((lines) => lines.filter((_, index) => index !== 1024))],
  ['reads from the beginning, whatever is asked', () => ({ log: (log) => ({ lines: () => log.lines(0) }) })],
  ['reads from the line after the position', () => ({ log: (log) => ({ lines: (from) => log.lines(from + 1) }) })],
  [
    'shows a reader what was there when it was opened',
    () => ({
      log: (log) => {
        const opened = log.term === undefined ? allLines(log, 0) : undefined
        return {
          lines: (from) =>
            opened ? oneBatch(opened.then((all) => all.filter(({ at }) => at >= from))) : log.lines(from),
        }
      },
    }),
  ],
  ['seeks one line too far', () => ({ log: (log) => ({ seek: (seq) => log.seek(seq + 1) }) })],
  [
    'seeks the last line past the end',
    () => ({ log: (log) => ({ seek: async (seq) => (await log.seek(seq)) ?? (await allLines(log, 0)).at(-1)?.at }) }),
  ],
  [
    'reads lines in the order of the log',
    () => ({
      log: (log) => ({ readAt: (positions) => log.readAt(positions.toSorted((left, right) => left.at - right.at)) }),
    }),
  ],
  [
    'reads a line once',
    () => ({
      log: (log) => ({
        readAt: (positions) => log.readAt([...new Map(positions.map((each) => [each.at, each])).values()]),
      }),
    }),
  ],
  ['has unfinished bytes', () => ({ log: () => ({ unfinishedBytes: async () => 1 }) })],
  [
    'never wakes a reader',
    () => ({
      log: () => ({
        changed: (signal) =>
          new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve()))),
      }),
    }),
  ],
  ['wakes a reader without news', () => ({ log: () => ({ changed: async () => undefined }) })],
  [
    'waits although the signal has aborted',
    () => ({ log: (log) => ({ changed: () => log.changed(new AbortController().signal) }) }),
  ],
]

const places: Mutant[] = [
  [
    'moves and erases a session with a writer',
    (port) => ({
      store: () => ({
        move: (scope, id, place) => freed(port, scope, id).then(() => port.move(scope, id, place)),
        erase: (scope, id) => freed(port, scope, id).then(() => port.erase(scope, id)),
      }),
    }),
  ],
  [
    'erases a session with a writer',
    (port) => ({ store: () => ({ erase: (scope, id) => freed(port, scope, id).then(() => port.erase(scope, id)) }) }),
  ],
  ['erases into the trash', () => ({ store: (port) => ({ erase: (scope, id) => port.move(scope, id, 'trash') }) })],
  ['does not move', () => ({ store: () => ({ move: async () => undefined }) })],
  [
    'replaces a session that exists',
    () => ({
      store: (port) => ({
        create: async (scope, id, header) => {
          await port.discard(scope, id)
          await port.create(scope, id, header)
        },
      }),
    }),
  ],
  [
    'creates a session although its id is in the archive',
    () => ({
      store: (port) => ({
        create: async (scope, id, header) => {
          if ((await port.placeOf(scope, id)) === 'archive') await port.discard(scope, id)
          await port.create(scope, id, header)
        },
      }),
    }),
  ],
  [
    'finds every session in its active place',
    () => ({ store: (port) => ({ placeOf: async (scope, id) => (await port.placeOf(scope, id)) && 'active' }) }),
  ],
  [
    'opens a session of any place',
    () => ({ store: (port) => ({ open: async (scope, id) => port.open(scope, id, await port.placeOf(scope, id)) }) }),
  ],
  [
    'claims an archived session',
    () => ({
      store: (port) => ({
        claim: async (scope, id, options) => {
          if ((await port.placeOf(scope, id)) === 'archive') await port.move(scope, id, 'active')
          return port.claim(scope, id, options)
        },
      }),
    }),
  ],
  [
    'discards a session that has a writer',
    () => ({
      store: (port) => ({
        discard: async (scope, id) => {
          const claim = await port.claim(scope, id, { insist: true })
          if (claim.type === 'claimed') await claim.log.close()
          await port.discard(scope, id)
        },
      }),
    }),
  ],
  ['discards nothing', () => ({ store: () => ({ discard: async () => undefined }) })],
  ['keeps the blobs of an erased session', () => sharedBlobs(({ tenant }, id) => `${tenant}/${id}`)],
  ['keeps the checkpoint of an erased session', () => sharedCheckpoints(({ tenant }, id) => `${tenant}/${id}`)],
  [
    'finds the text of an erased session',
    () => {
      const ever = new Map<string, SearchHit>()
      return {
        store: (port) => ({
          search: async (scope, query) => {
            for (const hit of await port.search(scope, query))
              ever.set(`${scope.tenant} ${query.text} ${query.place} ${hit.entryId}`, hit)
            const known = [...ever]
              .filter(([key]) => key.startsWith(`${scope.tenant} ${query.text} ${query.place} `))
              .map(([, hit]) => hit)
            return query.text === 'forget' ? known : port.search(scope, query)
          },
        }),
      }
    },
  ],
]

const tenants: Mutant[] = [
  [
    'has one scope for all',
    () => ({
      store: (port) => ({
        create: (_, id, header) => port.create(localScope, id, header),
        open: (_, id, place) => port.open(localScope, id, place),
        claim: (_, id, options) => port.claim(localScope, id, options),
        placeOf: (_, id) => port.placeOf(localScope, id),
      }),
    }),
  ],
  ['lists all scopes', () => ({ store: (port) => ({ list: (_, query) => port.list(localScope, query) }) })],
  [
    'measures all scopes',
    () => ({ store: (port) => ({ storedBytes: (_, query) => port.storedBytes(localScope, query) }) }),
  ],
  ['searches all scopes', () => ({ store: (port) => ({ search: (_, query) => port.search(localScope, query) }) })],
  ['discards in another scope', () => ({ store: (port) => ({ discard: (_, id) => port.discard(localScope, id) }) })],
  [
    'erases in another scope',
    () => ({
      store: (port) => ({
        erase: async (scope, id) => port.erase((await port.placeOf(scope, id)) ? scope : localScope, id),
      }),
    }),
  ],
  [
    'moves in another scope',
    () => ({ store: (port) => ({ move: (_, id, place) => port.move(localScope, id, place) }) }),
  ],
  [
    'knows the places of another scope',
    () => ({ store: (port) => ({ placeOf: (_, id) => port.placeOf(localScope, id) }) }),
  ],
  ['has one set of blobs for all scopes', () => sharedBlobs((_, id) => id)],
  ['has one set of blobs for all sessions', () => sharedBlobs(() => 'all')],
  ['has one checkpoint for all scopes', () => sharedCheckpoints((_, id) => id)],
  ['has one checkpoint for all sessions', () => sharedCheckpoints(() => 'all')],
]

const derived: Mutant[] = [
  [
    'keeps the array of a blob instead of its bytes',
    () => {
      const arrays = new Map<string, Uint8Array>()
      return {
        log: (log) => ({
          putBlob: async (bytes) => {
            const put = await log.putBlob(bytes)
            arrays.set(put.sha256, bytes)
            return put
          },
          getBlob: async (sha256) => (await log.getBlob(sha256)) && arrays.get(sha256),
        }),
      }
    },
  ],
  [
    'returns the size of a blob wrongly',
    () => ({
      log: (log) => ({ putBlob: async (bytes) => ({ ...(await log.putBlob(bytes)), size: bytes.length + 1 }) }),
    }),
  ],
  [
    'returns no bytes for an unknown blob',
    () => ({ log: (log) => ({ getBlob: async (sha256) => (await log.getBlob(sha256)) ?? new Uint8Array() }) }),
  ],
  [
    'has no empty blob',
    () => ({
      log: (log) => ({
        getBlob: async (sha256) => {
          const bytes = await log.getBlob(sha256)
          return bytes?.length ? bytes : undefined
        },
      }),
    }),
  ],
  [
    'keeps the first checkpoint',
    () => ({
      log: (log) => ({
        saveDerived: async (data) => {
          if ((await log.loadCheckpoint()).length === 0) await log.saveDerived(data)
        },
      }),
    }),
  ],
  ['cuts a checkpoint', () => onPieces((pieces) => pieces.map((piece) => piece.slice(0, 64 * 1024)))],
  [
    'keeps every derived text as the checkpoint',
    () => ({
      log: (log) => ({
        saveDerived: async ({ checkpoint, queue = '' }) =>
          log.saveDerived({ checkpoint: checkpoint ?? { count: 1, changed: new Map([[0, queue]]) } }),
      }),
    }),
  ],
  [
    'keeps only the pieces that changed',
    () => ({
      log: (log) => ({
        saveDerived: async ({ checkpoint, ...rest }) => {
          await log.saveDerived({ ...rest, checkpoint: { count: 0, changed: new Map() } })
          if (checkpoint) await log.saveDerived({ checkpoint })
        },
      }),
    }),
  ],
  [
    'never drops a piece',
    () => ({
      log: (log) => ({
        saveDerived: async ({ checkpoint, ...rest }) => {
          const { length } = await log.loadCheckpoint()
          await log.saveDerived(
            checkpoint ? { ...rest, checkpoint: { ...checkpoint, count: Math.max(length, checkpoint.count) } } : rest,
          )
        },
      }),
    }),
  ],
  [
    'drops one piece too many',
    () => ({
      log: (log) => ({
        saveDerived: async ({ checkpoint, ...rest }) =>
          log.saveDerived(
            checkpoint ? { ...rest, checkpoint: { ...checkpoint, count: Math.max(1, checkpoint.count - 1) } } : rest,
          ),
      }),
    }),
  ],
  [
    'orders pieces by their number as text',
    () =>
      onPieces((pieces) => {
        const order = [...pieces.keys()].sort((left, right) => (String(left) < String(right) ? -1 : 1))
        return order.map((number) => pieces[number] as string)
      }),
  ],
  ['returns the pieces but the first if brief', () => onPieces((pieces, isBrief) => pieces.slice(isBrief ? 1 : 0))],
]

const lists: Mutant[] = [
  ['lists the oldest first', () => onRows((all) => all.toReversed())],
  [
    'lists by creation',
    () => onRows((all) => all.toSorted((left, right) => (left.created + left.id < right.created + right.id ? 1 : -1))),
  ],
  ['ignores the filter by folder', () => onQuery(({ cwd: _, ...query }) => query)],
  ['ignores the filter by status', () => onQuery(({ status: _, ...query }) => query)],
  ['ignores the filter by text', () => onQuery(({ text: _, ...query }) => query)],
  ['ignores the filter by visibility', () => onQuery(({ isVisible: _, ...query }) => query)],
  ['ignores the place', () => onQuery(({ place: _, ...query }) => query)],
  ['ignores the limit', () => onQuery(({ limit: _, ...query }) => query)],
  ['ignores the cursor', () => onQuery(({ cursor: _, ...query }) => query)],
  [
    'filters after it has cut a page',
    () => ({
      store: (port) => ({
        list: async (scope, { isVisible, cwd, ...query }) => {
          const page = await port.list(scope, query)
          return {
            ...page,
            sessions: page.sessions.filter(
              (row) => (isVisible?.(row.cwd) ?? true) && (cwd === undefined || row.cwd === cwd),
            ),
          }
        },
      }),
    }),
  ],
  [
    'filters by text as a pattern',
    () => ({
      store: (port) => ({
        list: async (scope, { text, ...query }) => {
          const page = await port.list(scope, query)
          const pattern = new RegExp(likePattern(text ?? ''), 'i')
          return {
            ...page,
            sessions: page.sessions.filter((row) =>
              [row.name, row.firstText ?? '', row.cwd ?? ''].some((each) => pattern.test(each)),
            ),
          }
        },
      }),
    }),
  ],
  [
    'shows a row as it was first',
    () => {
      const first = new Map<string, SessionInfo>()
      return onRows((all) => all.map((row) => first.get(row.id) ?? (first.set(row.id, row), row)))
    },
  ],
]

const sizes: Mutant[] = [
  ['measures nothing', () => ({ store: () => ({ storedBytes: async () => 0 }) })],
  ['measures what is not visible', () => ({ store: (port) => ({ storedBytes: (scope) => port.storedBytes(scope) }) })],
  [
    'measures an erased session',
    () => {
      let most = 0
      return {
        store: (port) => ({
          storedBytes: async (scope, query) => (most = Math.max(most, await port.storedBytes(scope, query))),
        }),
      }
    },
  ],
]

const searches: Mutant[] = [
  [
    'searches for the first word alone',
    () => onSearch((query) => ({ ...query, text: query.text.split(' ')[0] ?? '' })),
  ],
  [
    'searches for the whole text',
    () => ({
      store: (port) => ({
        search: async (scope, query) =>
          (await port.search(scope, query)).filter(({ snippet }) =>
            snippet.toLowerCase().includes(query.text.toLowerCase()),
          ),
      }),
    }),
  ],
  ['ignores the limit of a search', () => onSearch((query) => ({ ...query, limit: 1000 }))],
  ['has another limit by default', () => onSearch((query) => ({ limit: 20, ...query }))],
  [
    'finds the oldest first',
    () => ({
      store: (port) => ({
        search: async (scope, query) =>
          (await port.search(scope, { ...query, limit: 1000 })).toReversed().slice(0, query.limit ?? 50),
      }),
    }),
  ],
  [
    'finds whole words alone',
    () =>
      onHits(({ snippet, matches }) =>
        matches.some(({ start, end }) => !/\w/.test(snippet[start - 1] ?? '') && !/\w/.test(snippet[end] ?? '')),
      ),
  ],
  [
    'finds the same case alone',
    () => onHits(({ snippet }, { text }) => text.split(' ').some((word) => snippet.includes(word))),
  ],
  ['finds no script without spaces', () => onHits(({ snippet }) => !/\p{scx=Han}/u.test(snippet))],
  [
    'finds no parts in the middle of a script without spaces',
    () => onHits(({ snippet }, { text }) => !/\p{scx=Han}/u.test(text) || snippet.startsWith(text)),
  ],
  [
    'treats words as patterns',
    () => ({
      store: (port) => ({
        search: async (scope, query) => {
          const found = await port.search(scope, { ...query, text: query.text.replaceAll(/[%_]/g, ' ') })
          return found
        },
      }),
    }),
  ],
  ['ignores the sessions of a search', () => onSearch(({ among: _, ...query }) => query)],
  ['ignores the roles of a search', () => onSearch(({ roles: _, ...query }) => query)],
  [
    'filters roles after the limit',
    () => ({
      store: (port) => ({
        search: async (scope, { roles, ...query }) =>
          (await port.search(scope, query)).filter(({ role }) => roles?.includes(role) ?? true),
      }),
    }),
  ],
  ['ignores the start of a search', () => onSearch(({ since: _, ...query }) => query)],
  ['ignores the end of a search', () => onSearch(({ until: _, ...query }) => query)],
  ['ignores the page of a search', () => onSearch(({ after: _, ...query }) => query)],
  ['ignores the place of a search', () => onSearch(({ place: _, ...query }) => query)],
  [
    'finds everything without words',
    () => onSearch((query) => (query.text.trim() === '' ? { ...query, text: 'o' } : query)),
  ],
  [
    'answers a search as it did first',
    () => {
      const answers = new Map<string, Promise<SearchHit[]>>()
      return {
        store: (port) => ({
          search: (scope, query) => {
            const key = JSON.stringify([scope, query])
            const answer = answers.get(key) ?? port.search(scope, query)
            answers.set(key, answer)
            return answer
          },
        }),
      }
    },
  ],
  [
    'marks nothing',
    () => ({
      store: (port) => ({
        search: async (scope, query) => (await port.search(scope, query)).map((hit) => ({ ...hit, matches: [] })),
      }),
    }),
  ],
  ['does not search summaries', () => onHits(({ role }) => role !== 'compaction')],
]

describe('the contract of stores', () => {
  test('is passed by the store that all mutants are made of', async () => {
    expect(await firstFailure(() => ({}))).toBeUndefined()
  })

  describe.each([
    ['batches', fencing],
    ['claims', claims],
    ['reads', reads],
    ['places', places],
    ['scopes', tenants],
    ['sizes', sizes],
    ['derived data', derived],
    ['list', lists],
    ['search', searches],
  ] as const)('on %s', (subject, mutants) => {
    test.each(mutants)('catches a store that %s', async (_, change) => {
      expect(await firstFailure(change, subject)).toBeDefined()
    })
  })
})

/** The title of the first test of the contract that a store fails. Tests with the subject in their title run first. */
async function firstFailure(change: Mutant[1], subject = ''): Promise<string | undefined> {
  const tests: { title: string; body: () => Promise<void> }[] = []
  testSessionStore({ test: (title, body) => tests.push({ title, body }), open: async () => openMutant(change) })
  const isNear = ({ title }: { title: string }): number => Number(title.includes(subject))
  for (const { title, body } of tests.toSorted((left, right) => isNear(right) - isNear(left))) {
    try {
      await withDeadline({ ms: patienceMs, late: () => new Error(`${title}: no end`) }, body)
    } catch {
      return title
    }
  }
  return undefined
}

/** A test of the contract takes a few milliseconds; a mutant may never end one. */
const patienceMs = 4000

function openMutant(change: Mutant[1]): StoreUnderTest {
  const inner = new MemoryLogStore()
  const port = changedPort(inner, change(inner))
  return {
    store: new SessionStore(port),
    port,
    reopen: async () => new SessionStore(port),
    writeBehindBack: async (sessionId) => {
      const claim = await port.claim(localScope, sessionId, { insist: true })
      if (claim.type !== 'claimed') throw new Error('A claim that insists was refused')
      const line = sealLine({ type: 'custom', id: 'foreign', parent_id: null }, 4)
      await claim.log.append([line], { term: claim.log.term ?? 0, head: 3, durability: 'durable' })
    },
    close: async () => undefined,
  }
}

type Append = (lines: readonly SealedLine[], options: AppendOptions) => AppendResult

/** The memory store answers an append at once. */
function onAppend(change: (append: Append) => Append): PortChange {
  return { log: (log) => ({ append: change(log.append.bind(log) as Append) }) }
}

/** Repeats a rejected batch with what the store expected. */
function obeying(append: Append, expected: RegExp, correct: (value: number) => Partial<AppendOptions>): Append {
  return (lines, options) => {
    const result = append(lines, options)
    const found = result.type === 'fenced' ? expected.exec(result.reason) : null
    return found ? append(lines, { ...options, ...correct(Number(found[1])) }) : result
  }
}

type Positions = Extract<AppendResult, { type: 'appended' }>['positions']
type ChangePosition = (position: Positions[number], line: SealedLine) => Positions[number]

function onPositions(change: (positions: Positions) => ChangePosition | undefined): PortChange {
  return onAppend((append) => (lines, options) => {
    const result = append(lines, options)
    const changeOne = result.type === 'appended' ? change(result.positions) : undefined
    if (result.type !== 'appended' || !changeOne) return result
    return { ...result, positions: result.positions.map((each, index) => changeOne(each, lines[index] as SealedLine)) }
  })
}

type Lines = Awaited<ReturnType<typeof allLines>>

function onLines(change: (lines: Lines) => Lines): PortChange {
  return { log: (log) => ({ lines: (from) => oneBatch(allLines(log, from).then(change)) }) }
}

async function allLines(log: WritableLog, from: number) {
  const all = []
  for await (const batch of log.lines(from)) all.push(...batch)
  return all
}

async function* oneBatch(lines: Promise<Lines>): AsyncIterable<Lines> {
  const all = await lines
  for (let from = 0; from < all.length; from += 1000) yield all.slice(from, from + 1000)
}

async function countOf(log: WritableLog): Promise<number> {
  return (await allLines(log, 0)).length
}

async function pause(): Promise<void> {
  await new Promise(setImmediate)
}

/** Takes a session from its writer. */
async function freed(port: LogStore, scope: Scope, id: string): Promise<void> {
  const claim = await port.claim(scope, id, { insist: true }).catch((error: unknown) => {
    if (!(error instanceof SessionError)) throw error
  })
  if (claim?.type === 'claimed') await claim.log.close()
}

type KeyOf = (scope: Scope, sessionId: string) => string

function sharedBlobs(keyOf: KeyOf): PortChange {
  const blobs = new Map<string, Uint8Array>()
  return {
    log: (log, { scope, sessionId }) => ({
      putBlob: async (bytes) => {
        const put = await log.putBlob(bytes)
        blobs.set(`${keyOf(scope, sessionId)} ${put.sha256}`, bytes.slice())
        return put
      },
      getBlob: async (sha256) => blobs.get(`${keyOf(scope, sessionId)} ${sha256}`),
    }),
  }
}

function sharedCheckpoints(keyOf: KeyOf): PortChange {
  const all = new Map<string, string[]>()
  return {
    log: (_, { scope, sessionId }) => ({
      saveDerived: async ({ checkpoint }) => {
        if (!checkpoint) return
        const pieces = all.get(keyOf(scope, sessionId)) ?? []
        for (const [number, content] of checkpoint.changed) pieces[number] = content
        all.set(keyOf(scope, sessionId), pieces.slice(0, checkpoint.count))
      },
      loadCheckpoint: async () => all.get(keyOf(scope, sessionId)) ?? [],
    }),
  }
}

function onPieces(change: (pieces: string[], isBrief: boolean) => string[]): PortChange {
  return {
    log: (log) => ({
      loadCheckpoint: async (options) => change(await log.loadCheckpoint(options), options?.isBrief ?? false),
    }),
  }
}

function onQuery(change: (query: SessionQuery) => SessionQuery): PortChange {
  return { store: (port) => ({ list: (scope, query) => port.list(scope, change(query)) }) }
}

/** Changes all rows, then cuts them into pages by their number. */
function onRows(change: (rows: SessionInfo[]) => SessionInfo[]): PortChange {
  return {
    store: (port) => ({
      list: async (scope, { limit = 100, cursor = '0', ...query }) => {
        const all = change((await port.list(scope, { ...query, limit: Infinity })).sessions)
        const next = Number(cursor) + limit
        return { sessions: all.slice(Number(cursor), next), ...(next < all.length && { cursor: String(next) }) }
      },
    }),
  }
}

function onSearch(change: (query: SearchQuery) => SearchQuery): PortChange {
  return { store: (port) => ({ search: (scope, query) => port.search(scope, change(query)) }) }
}

function onHits(isFound: (hit: SearchHit, query: SearchQuery) => boolean): PortChange {
  return {
    store: (port) => ({
      search: async (scope, query) => (await port.search(scope, query)).filter((hit) => isFound(hit, query)),
    }),
  }
}

/** What `LIKE` makes of a text that was not escaped. */
function likePattern(text: string): string {
  return text
    .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll('%', '.*')
    .replaceAll('_', '.')
}
