import { text, type Place, type Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { replay } from '../../../packages/session/src/log/replay.ts'
import { SessionState } from '../../../packages/session/src/state/session-state.ts'
import { ReadableFileLog } from '../../../packages/session/src/stores/file/file-log.ts'
import { mendTail } from '../../../packages/session/src/stores/file/recover.ts'
import { MemoryDisk } from '../../../packages/session/src/testing/memory-disk.ts'
import type { Crash } from './crashes-at.ts'
import { allPlaces, type Due, type Ledger } from './ledger.ts'

export interface Found {
  /** What was read, by session. */
  sessions: Map<string, FoundSession>
  /** How many of them were opened for this; the others stand as they were found before. */
  opened: number
  problems: string[]
}

export interface FoundSession {
  place: Place
  folder: string
  state: SessionState
  ids: Set<string>
  log: Uint8Array
}

/**
 * Opens every session on the disk that a crash left, by the pieces that the store opens it with, and looks for what was told.
 * `known` has what was found in the sessions that no crash at this moment can touch; they are read once for all.
 */
export async function checkCrash(
  crash: Crash,
  moment: {
    ledger: Ledger
    due: ReadonlyMap<string, Due>
    dueInside: ReadonlyMap<string, Due>
    touched: ReadonlySet<string>
    known: Map<string, FoundSession>
  },
): Promise<Found> {
  const { ledger, touched, known } = moment
  const due = crash.isInsideCall ? moment.dueInside : moment.due
  const disk = new MemoryDisk({ state: crash.state() })
  const found: Found = { sessions: new Map(), opened: 0, problems: [] }
  const unnamed = disk.names(ledger.folder).filter((name) => !name.startsWith('.') && !due.has(name))
  for (const sessionId of [...due.keys(), ...unnamed]) {
    const fail = (problem: string): void => void found.problems.push(`session ${sessionId}: ${problem}`)
    const judge = { crash, ledger, fail, due: due.get(sessionId) ?? noneDue }
    const place = findPlace(disk, sessionId, judge)
    if (place === undefined) continue
    const before = known.get(sessionId)
    const session = before?.place === place ? before : await openByPieces(disk, { sessionId, place }, judge)
    if (!session) continue
    found.sessions.set(sessionId, session)
    if (!touched.has(sessionId)) known.set(sessionId, session)
    if (session === before) continue
    found.opened++
    checkTold(disk, session, judge)
  }
  return found
}

const noneDue: Due = { lines: new Map(), blobs: new Set(), torn: [], places: undefined }

function findPlace(disk: MemoryDisk, sessionId: string, { due, ledger, fail }: Judge): Place | undefined {
  const places = allPlaces.filter((place) => disk.exists(ledger.pathsOf(sessionId, place).folder))
  const expected = due.places
  if (expected && !places.some((place) => expected.includes(place))) fail(`is lost; it should be in ${expected.join()}`)
  const wrong = places.filter((place) => expected?.includes(place) === false)
  if (wrong.length > 0) fail(`is in ${wrong.join()} and should be in ${expected?.join()}`)
  return places[0]
}

function checkTold(disk: MemoryDisk, { ids, log, folder }: FoundSession, { crash, due, ledger, fail }: Judge): void {
  for (const [id, level] of due.lines) {
    if ((level === 'durable' || crash.level === 'process') && !ids.has(id)) fail(`${level} line ${id} is lost`)
  }
  for (const sha256 of due.blobs) checkBlob(disk, ledger, folder, { sha256, fail })
  for (const torn of due.torn) {
    const asides = disk.names(folder).filter((name) => name.includes('.torn-'))
    const isKept = asides.some((name) => isSame(disk.contentOf(`${folder}/${name}`), torn))
    if (!isKept && !Buffer.from(log).includes(Buffer.from(torn))) fail(`${torn.length} torn bytes were thrown away`)
  }
}

interface Judge {
  crash: Crash
  due: Due
  ledger: Ledger
  fail: (problem: string) => void
}

async function openByPieces(
  disk: MemoryDisk,
  { sessionId, place }: { sessionId: string; place: Place },
  { crash, ledger, fail }: Judge,
): Promise<FoundSession | undefined> {
  const paths = ledger.pathsOf(sessionId, place)
  const { folder } = paths
  if (!disk.exists(paths.log)) {
    fail('it is there without a log')
    return undefined
  }
  const before = disk.contentOf(paths.log) as Uint8Array
  const fd = disk.openAppend(paths.log)
  const mended = await mendTail(disk, paths.log, fd)
  await disk.dataSync(fd)
  const log = disk.contentOf(paths.log) as Uint8Array
  if (mended.keptAs !== undefined) checkTorn(disk, mended.keptAs, { before, log, fail })
  if (!isSame(before, log)) {
    const again = await mendTail(disk, paths.log, fd)
    if (again.tornBytes > 0 || !isSame(disk.contentOf(paths.log), log))
      fail('opening it a second time changed it again')
  }
  const state = new SessionState({ isWhole: true })
  const ids = new Set<string>()
  const everWritten = ledger.writtenIn(sessionId)
  await replay(new ReadableFileLog(disk, paths), state, {
    from: 0,
    watch: ({ line, at, size }) => {
      ids.add(line.id)
      const written = everWritten.get(line.id)
      if (!isSame(written?.bytes, log.subarray(at, at + size))) fail(`line ${line.id} at ${at} was never written so`)
      for (const sha256 of written?.blobs ?? []) checkBlob(disk, ledger, folder, { sha256, fail })
    },
  })
  if (!state.header) fail('the header is missing')
  if (state.damageCount > 0 && !crash.hasHole && !ledger.mayBeDamaged)
    fail(`damage where nothing was damaged: ${JSON.stringify(state.damage[0])}`)
  return { place, folder, state, ids, log }
}

/** What was cut off is kept, byte for byte. */
function checkTorn(
  disk: MemoryDisk,
  keptAs: string,
  { before, log, fail }: { before: Uint8Array; log: Uint8Array; fail: Judge['fail'] },
): void {
  const torn = disk.contentOf(keptAs) ?? new Uint8Array()
  const isWhole = isSame(before.subarray(before.length - torn.length), torn)
  if (!isWhole || log.length + torn.length < before.length) fail(`what was torn is not in ${keptAs}`)
}

function checkBlob(
  disk: MemoryDisk,
  ledger: Ledger,
  folder: string,
  { sha256, fail }: { sha256: string; fail: Judge['fail'] },
): void {
  const content = disk.contentOf(`${folder}/blobs/${sha256}`)
  const expected = ledger.blobs.get(sha256)
  if (content === undefined || (expected && !isSame(content, expected))) fail(`blob ${sha256} is missing or changed`)
}

function isSame(left: Uint8Array | undefined, right: Uint8Array): boolean {
  return left !== undefined && Buffer.compare(left, right) === 0
}

/**
 * The same through the store: a quick open with whatever the derived files have become agrees with the whole log, changes
 * nothing the second time, and takes another message with a blob, which survive a power cut.
 */
export async function checkThroughStore(
  crash: Crash,
  sessions: Iterable<[string, FoundSession]>,
  ledger: Ledger,
): Promise<string[]> {
  const problems: string[] = []
  for (const [sessionId, expected] of sessions) {
    if (expected.place !== 'active') continue
    const disk = new MemoryDisk({ state: crash.state() })
    const store = storeOn(disk, ledger)
    const fail = (problem: string): void => void problems.push(`session ${sessionId}, through the store: ${problem}`)
    const before = await store.open(sessionId)
    compare(before, expected, fail)
    await before.close()
    if (!isSame(disk.contentOf(ledger.logOf(sessionId)), expected.log)) fail('opening and closing left another log')
    const session = await store.open(sessionId)
    compare(session, expected, fail)
    if (!isSame(disk.contentOf(ledger.logOf(sessionId)), expected.log)) fail('the second open changed the log')
    const blob = await session.putBlob(Buffer.from('one more picture'))
    const image = { source: { type: 'blob', mediaType: 'image/png', ...blob } } as const
    const id = await session.appendMessage('user', [text('one more'), { type: 'image', image }])
    await checkAfterwards(disk.afterPowerCut(), sessionId, {
      id,
      expected,
      ledger,
      fail,
      mayBeDamaged: crash.hasHole || ledger.mayBeDamaged,
    })
    await session.close()
    if (ledger.copies.has(sessionId) && !crash.hasHole && !ledger.mayBeDamaged)
      await checkCompleted(crash, sessionId, { expected, ledger, fail })
    if (disk.openPaths.length > 0) fail(`these are still open: ${disk.openPaths.join()}`)
  }
  return problems
}

/** A copy that the crash cut off is completed from its source, if that has all of it. */
async function checkCompleted(
  crash: Crash,
  sessionId: string,
  { expected, ledger, fail }: { expected: FoundSession; ledger: Ledger; fail: (problem: string) => void },
): Promise<void> {
  const { parent_session: from, parent_entry: leafId = null } = headerOf(expected)
  const disk = new MemoryDisk({ state: crash.state() })
  if (from === undefined || !disk.exists(ledger.logOf(from))) return
  const store = storeOn(disk, ledger)
  await using source = await store.open(from)
  const known = await messageIdsOf(source)
  const wanted = [...ledger.writtenIn(sessionId).values()].flatMap(({ bytes }) =>
    messageId(Buffer.from(bytes).toString()),
  )
  const target = ledger.copies.get(sessionId)
  // It may be a branch summary, which is no message.
  const isGone = target !== undefined && !(await hasEntry(source, target))
  if (isGone || !wanted.every((id) => known.has(id))) return
  await source.completeCopy(sessionId, target)
  await using copy = await store.open(sessionId)
  const found = await messageIdsOf(copy)
  const missing = wanted.filter((id) => !found.has(id))
  if (missing.length > 0) fail(`it was completed without ${missing.join()}`)
  if (copy.leafId !== leafId) fail(`its leaf is ${copy.leafId}, and that of the copy was ${leafId}`)
}

function headerOf({ state }: FoundSession): { parent_session?: string; parent_entry?: string } {
  return (state.header ?? {}) as { parent_session?: string; parent_entry?: string }
}

async function hasEntry(session: Session, id: string): Promise<boolean> {
  return session.getEntry(id).then(
    () => true,
    () => false,
  )
}

async function messageIdsOf(session: Session): Promise<Set<string>> {
  const ids = new Set<string>()
  for await (const line of session.lines()) if (line.type === 'line') for (const id of messageId(line.text)) ids.add(id)
  return ids
}

function messageId(line: string): string[] {
  const [, id] = /^\{"seq":\d+,"type":"message","id":"([^"]+)"/.exec(line) ?? []
  return id === undefined ? [] : [id]
}

function compare(session: Session, { state }: FoundSession, fail: (problem: string) => void): void {
  const leafId = state.leaf?.id ?? null
  if (session.head.seq !== state.last.seq || session.leafId !== leafId) {
    fail(`it stands at ${session.head.seq}, ${session.leafId}, and the whole log at ${state.last.seq}, ${leafId}`)
  }
  if (session.inbox.messages.length !== state.inbox.messages.length) fail('it has another inbox than the whole log')
  if (session.damage.length > 0 !== state.damageCount > 0) fail('it reports other damage than the whole log')
}

async function checkAfterwards(
  disk: MemoryDisk,
  sessionId: string,
  expectation: {
    id: string
    expected: FoundSession
    ledger: Ledger
    mayBeDamaged: boolean
    fail: (problem: string) => void
  },
): Promise<void> {
  const { id, expected, ledger, mayBeDamaged, fail } = expectation
  const store = storeOn(disk, ledger)
  const session = await store.open(sessionId)
  if (session.leafId !== id) fail('the message appended after opening is lost')
  const log = disk.contentOf(ledger.logOf(sessionId)) ?? new Uint8Array()
  if (!isSame(log.subarray(0, expected.log.length), expected.log)) fail('appending changed what was there')
  await session.close()
  const report = await store.verify(sessionId)
  if (report.missingBlobs.length > 0 || (!report.isIntact && !mayBeDamaged))
    fail(`verify says ${JSON.stringify(report)}`)
}

function storeOn(disk: MemoryDisk, { folder }: Ledger): ReturnType<typeof openFileStore> {
  return openFileStore({ folder, port: disk, lock: disk.lock })
}
