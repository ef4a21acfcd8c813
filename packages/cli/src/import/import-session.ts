import { SessionError, type Content, type Message, type Session, type SessionStore } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { Redactor } from '@tapetree/agent/settings'
import type { DropReason, Fate, FoundSession, MergeReason, NewLine, SourceReader } from './import-source.ts'
import { hashOf } from './source-lines.ts'
import { sources } from './sources.ts'

/** How many lines of the source became what. */
export interface LineTally {
  lines: number
  kept: number
  merged: Partial<Record<MergeReason, number>>
  dropped: Partial<Record<DropReason, number>>
}

export interface ImportedSession {
  /** The id of our session. */
  id: string
  outcome: 'imported' | 'updated' | 'unchanged' | 'empty' | 'put-away' | 'busy'
  tally: LineTally
  /** Entries and records that were added. */
  added: number
  /** Calls without a result that were closed. */
  closed: number
}

export interface ImportOptions {
  store: SessionStore
  redactor: Redactor
  /** Changes nothing. */
  dryRun?: boolean
  /** Ids of sessions in the archive and the trash: they are left alone. */
  putAway?: ReadonlySet<string>
  signal?: AbortSignal
  /** Called with what became of each line. */
  onLine?: (line: LineReport) => void
}

export interface LineReport {
  number: number
  kind: string
  fate: Fate
}

/**
 * Imports a session as data: nothing of it runs, and it has no permissions. Ids are derived from those of the source, so a second import
 * finds what the first one has written and adds the rest to the same session.
 */
export async function importSession(found: FoundSession, options: ImportOptions): Promise<ImportedSession> {
  const id = sessionIdOf(found.source, found.session.id)
  const outline = await Outline.read(found, options)
  const nothing = { id, tally: outline.tally, added: 0, closed: 0 }
  if (!outline.hasMessages) return { ...nothing, outcome: 'empty' }
  if (options.putAway?.has(id)) return { ...nothing, outcome: 'put-away' }
  const target = await openTarget(found, { id, started: outline.started, ...options })
  if (target === 'busy') return { ...nothing, outcome: 'busy' }
  try {
    const { added, closed } = await new SessionImport(id, { found, outline }, options).write(target.session)
    const outcome = target.isNew ? 'imported' : added + closed > 0 ? 'updated' : 'unchanged'
    return { ...nothing, added, closed, outcome }
  } finally {
    // What was written stays, also after a failure: the next import goes on from there.
    await target.session?.close()
  }
}

interface Node {
  parent: string | null
  timestamp: string
  calls: string[]
  results: string[]
  isOfUser: boolean
}

/** The lines of a source without their content, of which a long session has too much to hold. */
class Outline {
  readonly tally: LineTally = { lines: 0, kept: 0, merged: {}, dropped: {} }
  /** Of all lines of ours, in order. */
  readonly keys = new Set<string>()
  readonly nodes = new Map<string, Node>()
  hasMessages = false
  leaf: string | null = null
  started: string | undefined
  /** The time of the first line. */
  first: string | undefined

  static async read(found: FoundSession, { signal, onLine }: ImportOptions): Promise<Outline> {
    const outline = new Outline()
    const reader = sources[found.source].reader(found.session)
    for await (const { report, lines } of takenLines(found, reader, signal)) {
      count(outline.tally, report.fate)
      onLine?.(report)
      for (const line of lines) outline.#add(line)
    }
    outline.leaf = reader.leaf
    outline.started = reader.started
    return outline
  }

  #add({ key, parent, timestamp, draft }: NewLine): void {
    this.first ??= timestamp
    this.keys.add(key)
    this.hasMessages ||= draft.type === 'message' || draft.type === 'compaction'
    if (!['message', 'custom', 'compaction', 'branch_summary'].includes(draft.type)) return
    const content = contentOf(draft)
    this.nodes.set(key, {
      parent,
      timestamp,
      calls: content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : [])),
      results: content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult.toolUseId] : [])),
      isOfUser: draft.type === 'message' && draft.message.role === 'user',
    })
  }

  /** The entries after which nothing comes, with their calls that have no result. */
  openEnds(): { key: string; timestamp: string; calls: string[] }[] {
    const ends = new Set(this.nodes.keys())
    for (const { parent } of this.nodes.values()) if (parent !== null) ends.delete(parent)
    return [...ends].flatMap((key) => {
      const calls = this.#openCalls(key)
      return calls.length === 0 ? [] : [{ key, timestamp: this.nodes.get(key)?.timestamp ?? '', calls }]
    })
  }

  /** The calls on the way to an entry that have no result, up to the last message of the user. */
  #openCalls(end: string): string[] {
    const answered = new Set<string>()
    const calls = new Set<string>()
    for (let node = this.nodes.get(end); node; node = node.parent === null ? undefined : this.nodes.get(node.parent)) {
      for (const result of node.results) answered.add(result)
      for (const call of node.calls) calls.add(call)
      if (node.isOfUser) break
    }
    return [...calls].filter((call) => !answered.has(call))
  }
}

async function* takenLines(
  found: FoundSession,
  reader: SourceReader,
  signal?: AbortSignal,
): AsyncGenerator<{ report: LineReport; lines: NewLine[] }> {
  for await (const line of found.lines(signal)) {
    const { number } = line
    if (line.type === 'read') {
      const { kind, fate, lines } = reader.take(line)
      yield { report: { number, kind, fate }, lines }
    } else yield { report: { number, kind: 'unreadable', fate: { type: 'dropped', reason: line.reason } }, lines: [] }
  }
}

function sessionIdOf(source: string, id: string): string {
  return idFrom('session', source, id)
}

/** A UUID of version 8, which is made of anything. */
function idFrom(...parts: readonly string[]): string {
  const hex = hashOf(...parts)
  const variant = ((parseInt(hex.slice(15, 16), 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-${variant}${hex.slice(16, 19)}-${hex.slice(19, 31)}`
}

function count(tally: LineTally, fate: Fate): void {
  tally.lines += 1
  if (fate.type === 'kept') tally.kept += 1
  else if (fate.type === 'merged') tally.merged[fate.reason] = (tally.merged[fate.reason] ?? 0) + 1
  else tally.dropped[fate.reason] = (tally.dropped[fate.reason] ?? 0) + 1
}

async function openTarget(
  { source, session }: FoundSession,
  { store, id, started, dryRun = false }: ImportOptions & { id: string; started: string | undefined },
): Promise<{ session: Session | undefined; isNew: boolean } | 'busy'> {
  const existing = await store.open(id, { readOnly: dryRun }).catch((error: unknown) => {
    if (error instanceof SessionError && error.code === 'session-not-found') return undefined
    throw error
  })
  if (existing) {
    // An interrupted run goes on at the leaf, which must not move.
    if (dryRun || (existing.readOnlyReason === undefined && !existing.openRun))
      return { session: existing, isNew: false }
    await existing.close()
    return 'busy'
  }
  if (dryRun) return { session: undefined, isNew: true }
  const { cwd, parentId, subagent } = session
  const made = await store.create({
    id,
    ...(cwd !== undefined && { cwd }),
    ...(parentId !== undefined && { parentSession: sessionIdOf(source, parentId) }),
    ...(subagent && { subagent }),
    ...(started !== undefined && { timestamp: started }),
  })
  return { session: made, isNew: true }
}

/** Appends what a session does not have yet. */
class SessionImport {
  readonly #id: string
  readonly #found: FoundSession
  readonly #outline: Outline
  readonly #options: ImportOptions

  constructor(id: string, { found, outline }: { found: FoundSession; outline: Outline }, options: ImportOptions) {
    this.#id = id
    this.#found = found
    this.#outline = outline
    this.#options = options
  }

  /** Without a session, only counts. */
  async write(session: Session | undefined): Promise<{ added: number; closed: number }> {
    const { ids: present, isMovedHere } = session
      ? await readLog(session)
      : { ids: new Set<string>(), isMovedHere: false }
    const missing = new Set([...this.#outline.keys].filter((key) => !present.has(this.#idOf(key))))
    const closings = this.#closings().filter(({ key }) => !present.has(this.#idOf(key)))
    const closed = closings.reduce((sum, { draft }) => sum + contentOf(draft).length, 0)
    if (!session || this.#options.dryRun) return { added: missing.size, closed }
    const leafBefore = session.leafId
    if (missing.size + closings.length > 0) await session.loadTree()
    if (!present.has(this.#idOf(originKey))) await this.#append(session, [this.#origin()])
    if (missing.size > 0) await this.#appendMissing(session, missing)
    await this.#append(session, closings)
    // Who went back here stays there, until there is something new.
    if (missing.size + closings.length > 0 || !isMovedHere) await this.#moveLeaf(session, leafBefore)
    return { added: missing.size, closed }
  }

  /** Reads the source again: what has been added to it in the meantime is left to the next import. */
  async #appendMissing(session: Session, missing: ReadonlySet<string>): Promise<void> {
    const reader = sources[this.#found.source].reader(this.#found.session)
    let batch: NewLine[] = []
    let bytes = 0
    for await (const { lines } of takenLines(this.#found, reader, this.#options.signal)) {
      for (const line of lines) {
        if (!missing.has(line.key)) continue
        batch.push(line)
        bytes += sizeOf(line)
      }
      if (batch.length < maxBatchLines && bytes < maxBatchBytes) continue
      await this.#append(session, batch)
      batch = []
      bytes = 0
    }
    await this.#append(session, batch)
  }

  /** The first entry says where the session comes from. */
  #origin(): NewLine {
    const { source, session } = this.#found
    const data = { source, session: session.id }
    const timestamp = this.#outline.first ?? new Date(0).toISOString()
    return {
      key: originKey,
      parent: null,
      timestamp,
      draft: { type: 'custom', custom: { customType: 'import', data } },
    }
  }

  async #append(session: Session, lines: readonly NewLine[]): Promise<void> {
    if (lines.length === 0) return
    const drafts = []
    for (const { key, parent, timestamp, draft, names } of lines) {
      const stored = await withBlobs(redacted(this.#named(draft, names), this.#options.redactor), session)
      const parentId = key === originKey ? null : this.#idOf(parent ?? originKey)
      drafts.push({ draft: { ...stored, id: this.#idOf(key) }, context: { parentId, timestamp } })
    }
    await session.appendAll(drafts)
  }

  /** The draft with the ids of the entries that it names. */
  #named(draft: EntryDraft | RecordDraft, names: NewLine['names']): EntryDraft | RecordDraft {
    if (draft.type === 'compaction' && names?.firstKept !== undefined) {
      return { ...draft, compaction: { ...draft.compaction, firstKeptEntryId: this.#idOf(names.firstKept) } }
    }
    if (draft.type === 'branch_summary' && typeof names?.from === 'string') {
      return { ...draft, branchSummary: { ...draft.branchSummary, fromId: this.#idOf(names.from) } }
    }
    if (draft.type === 'label' && names?.target !== undefined) {
      return { ...draft, label: { ...draft.label, targetId: this.#idOf(names.target) } }
    }
    return draft
  }

  /** Results for calls that had none when the conversation, or a branch of it, stopped. */
  #closings(): NewLine[] {
    const { title } = sources[this.#found.source]
    const said = `No result: ${title} stopped before this call had ended, or still ran it when the session was imported.`
    return this.#outline.openEnds().map(({ key, timestamp, calls }) => {
      const content = calls.map((toolUseId): Content => {
        return { type: 'tool_result', toolResult: { toolUseId, isError: true, content: said } }
      })
      const draft: EntryDraft = { type: 'message', message: { role: 'tool', content } }
      return { key: closingKey(key), parent: key, timestamp, draft }
    })
  }

  /** To where the source goes on, unless someone went on here. */
  async #moveLeaf(session: Session, before: string | null): Promise<void> {
    const { leaf } = this.#outline
    const closing = leaf === null ? undefined : this.#closings().find(({ parent }) => parent === leaf)
    const wanted = closing?.key ?? leaf ?? originKey
    const target = before === null || isImported(before) ? this.#idOf(wanted) : before
    if (session.leafId !== target) await session.branch(target)
  }

  #idOf(key: string): string {
    return idFrom(this.#id, key)
  }
}

const maxBatchLines = 256
const maxBatchBytes = 8 * 2 ** 20
const originKey = 'origin'

function closingKey(key: string): string {
  return `closed ${key}`
}

function sizeOf({ draft }: NewLine): number {
  return JSON.stringify(draft).length
}

function contentOf(draft: EntryDraft | RecordDraft): readonly Content[] {
  return draft.type === 'message' ? draft.message.content : []
}

/** The ids of all lines of a session, and whether its leaf was last moved by someone else than an import. */
async function readLog(session: Session): Promise<{ ids: Set<string>; isMovedHere: boolean }> {
  const ids = new Set<string>()
  let isOfImport = false
  let isMovedHere = false
  for await (const line of session.lines()) {
    if (line.type !== 'line') continue
    const { id, type } = JSON.parse(line.text) as { id?: unknown; type?: unknown }
    if (type === 'writer') isOfImport = false
    if (type === 'leaf') isMovedHere = !isOfImport
    if (typeof id !== 'string') continue
    ids.add(id)
    isOfImport ||= isImported(id)
  }
  return { ids, isMovedHere }
}

/** Also for an entry that the source has no more, such as the beginning of a text that has grown: our own ids have version 7. */
function isImported(id: string): boolean {
  return id.charAt(14) === '8'
}

/** Nothing of an import runs again, so all of it is redacted, also calls. Images are not text. */
function redacted(draft: EntryDraft | RecordDraft, redactor: Redactor): EntryDraft | RecordDraft {
  if (draft.type !== 'message') return redactor.json(draft)
  const images: Content[] = []
  const without = mapContent(draft.message, (block) => {
    if (block.type !== 'image' || block.image.source.type === 'url') return block
    return { type: 'text', text: { content: `${imageMark}${images.push(block) - 1}` } }
  })
  const message = redactor.json(without)
  const restored = mapContent(message, (block) => {
    if (block.type !== 'text' || !block.text.content.startsWith(imageMark)) return block
    return images[Number(block.text.content.slice(imageMark.length))] ?? block
  })
  return {
    ...draft,
    message: mapContent(restored, (block, index) => withoutProof(block, draft.message.content[index])),
  }
}

/** No text of a session has it: it is not a character. */
const imageMark = '\uFFFF\uFFFEimage '

/** A proof of thinking is worthless when the thinking was changed. */
function withoutProof(block: Content, before: Content | undefined): Content {
  if (block.type !== 'reasoning' || before?.type !== 'reasoning') return block
  return block.reasoning.text === before.reasoning.text
    ? block
    : { type: 'reasoning', reasoning: { text: block.reasoning.text } }
}

function mapContent(message: Message, change: (block: Content, index: number) => Content): Message {
  const content = message.content.map((block, index) => {
    if (block.type !== 'tool_result' || typeof block.toolResult.content === 'string') return change(block, index)
    const inner = block.toolResult.content.map((each) => change(each, -1))
    return { ...block, toolResult: { ...block.toolResult, content: inner } }
  })
  return { ...message, content }
}

/** Images become blobs, which lists and searches do not read. */
async function withBlobs(draft: EntryDraft | RecordDraft, session: Session): Promise<EntryDraft | RecordDraft> {
  if (draft.type !== 'message') return draft
  const blobs = new Map<string, Content>()
  const collect = (block: Content): Content => {
    if (block.type === 'image' && block.image.source.type === 'base64') blobs.set(block.image.source.data, block)
    return block
  }
  mapContent(draft.message, collect)
  if (blobs.size === 0) return draft
  const stored = new Map<string, Content>()
  for (const [data, block] of blobs) {
    if (block.type !== 'image') continue
    const { sha256, size } = await session.putBlob(Buffer.from(data, 'base64'))
    const { mediaType } = block.image.source
    stored.set(data, { type: 'image', image: { source: { type: 'blob', mediaType, sha256, size } } })
  }
  const message = mapContent(draft.message, (block) =>
    block.type === 'image'
      ? (stored.get(block.image.source.type === 'base64' ? block.image.source.data : '') ?? block)
      : block,
  )
  return { ...draft, message }
}
