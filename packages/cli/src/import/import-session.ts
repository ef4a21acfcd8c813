import { SessionError, type Content, type Message, type Session, type SessionStore } from '@tapetree/session'
import type { DiskLine, EntryDraft, RecordDraft } from '@tapetree/session/format'
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

  /** The calls before an entry that have no result there, up to the last message of the user. */
  openCalls(end: string): string[] {
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
  /** Of all lines that this import knows, by their keys. */
  readonly #ids = new Map<string, string>()
  /** Entries that are added again, at another place. */
  readonly #moved = new Set<string>()

  constructor(id: string, { found, outline }: { found: FoundSession; outline: Outline }, options: ImportOptions) {
    this.#id = id
    this.#found = found
    this.#outline = outline
    this.#options = options
  }

  /** Without a session, only counts. */
  async write(session: Session | undefined): Promise<{ added: number; closed: number }> {
    const log: ReadLog = session ? await readLog(session) : { parents: new Map() }
    const isMissing = (key: string): boolean => !log.parents.has(this.#idOf(key))
    this.#identify(log.parents)
    const missing = new Set([...this.#outline.keys].filter(isMissing))
    const closings = this.#closings()
    const newClosings = closings.filter(({ key }) => isMissing(key))
    const closed = newClosings.reduce((sum, { draft }) => sum + contentOf(draft).length, 0)
    if (!session || this.#options.dryRun) return { added: missing.size, closed }
    const isNew = missing.size + newClosings.length > 0
    if (isNew) await session.loadTree()
    if (isMissing(originKey)) await this.#append(session, [this.#origin()])
    const added = await this.#appendMissing(session, missing)
    if (added < missing.size) return { added, closed: 0 }
    await this.#append(session, newClosings)
    const { place } = log
    // Who goes on here stays there. Who only went back stays until there is something new.
    if (place !== undefined && place !== null && !isImported(place)) await moveTo(session, place)
    else if (isNew || place === undefined) {
      await moveTo(session, this.#idOf(closings.at(-1)?.key ?? this.#outline.leaf ?? originKey))
    }
    return { added, closed }
  }

  /** A source that was written again may have an entry at another place. It is added there, and so is what follows it. */
  #identify(parents: ReadLog['parents']): void {
    for (const key of this.#outline.keys) {
      const id = idFrom(this.#id, key)
      const node = this.#outline.nodes.get(key)
      const known = parents.get(id)
      const parent = node && this.#parentIdOf(node.parent)
      if (parent === undefined || known === undefined || known === parent) this.#ids.set(key, id)
      else {
        this.#ids.set(key, idFrom(this.#id, key, parent))
        this.#moved.add(key)
      }
    }
  }

  /**
   * Reads the source again and returns how many lines were added. What has changed in it in the meantime is left to the next import, with
   * all that follows.
   */
  async #appendMissing(session: Session, missing: ReadonlySet<string>): Promise<number> {
    if (missing.size === 0) return 0
    const reader = sources[this.#found.source].reader(this.#found.session)
    let added = 0
    let batch: NewLine[] = []
    let bytes = 0
    const flush = async (): Promise<void> => {
      await this.#append(session, batch)
      added += batch.length
      batch = []
      bytes = 0
    }
    for await (const { lines } of takenLines(this.#found, reader, this.#options.signal)) {
      for (const line of lines) {
        if (!missing.has(line.key)) continue
        const { parent } = this.#outline.nodes.get(line.key) ?? line
        if (parent !== line.parent) {
          await flush()
          return added
        }
        batch.push(line)
        bytes += sizeOf(line)
      }
      if (batch.length >= maxBatchLines || bytes >= maxBatchBytes) await flush()
    }
    await flush()
    return added
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
      const spent = this.#moved.has(key) ? withoutUsage(draft) : draft
      const stored = await withBlobs(redacted(this.#named(spent, names), this.#options.redactor), session)
      const parentId = key === originKey ? null : this.#parentIdOf(parent)
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

  /** Results for the calls that had none where the conversation stopped. */
  #closings(): NewLine[] {
    const { leaf, nodes } = this.#outline
    const { title } = sources[this.#found.source]
    const said = `No result: ${title} stopped before this call had ended, or still ran it when the session was imported.`
    const lines: NewLine[] = []
    const calls = leaf === null ? [] : this.#outline.openCalls(leaf)
    for (let parent = leaf ?? originKey; calls.length > 0; parent = lines.at(-1)?.key ?? parent) {
      const content = calls.splice(0, maxClosed).map((toolUseId): Content => {
        return { type: 'tool_result', toolResult: { toolUseId, isError: true, content: said } }
      })
      const draft: EntryDraft = { type: 'message', message: { role: 'tool', content } }
      const timestamp = nodes.get(leaf ?? originKey)?.timestamp ?? ''
      lines.push({ key: `closed ${this.#moved.has(parent) ? this.#idOf(parent) : parent}`, parent, timestamp, draft })
    }
    return lines
  }

  #parentIdOf(parent: string | null): string {
    return this.#idOf(parent ?? originKey)
  }

  #idOf(key: string): string {
    return this.#ids.get(key) ?? idFrom(this.#id, key)
  }
}

const maxBatchLines = 256
const maxBatchBytes = 8 * 2 ** 20
/** Results in one line. */
const maxClosed = 400
const originKey = 'origin'

function sizeOf({ draft }: NewLine): number {
  return JSON.stringify(draft).length
}

function contentOf(draft: EntryDraft | RecordDraft): readonly Content[] {
  return draft.type === 'message' ? draft.message.content : []
}

interface ReadLog {
  /** The entry before each one, by their ids; undefined for lines that are none. */
  parents: Map<string, string | null | undefined>
  /** Where someone went on or went to. Undefined if nobody did since the last import of something new. */
  place?: string | null | undefined
}

async function readLog(session: Session): Promise<ReadLog> {
  const log: ReadLog = { parents: new Map() }
  let isOfImport = false
  for await (const line of session.lines()) {
    if (line.type !== 'line') continue
    const { id, type, parent_id: parent, leaf } = JSON.parse(line.text) as Partial<DiskLine> & Place
    if (type === 'writer') isOfImport = false
    if (type === 'leaf' && !isOfImport) log.place = leaf?.target_id
    if (typeof id !== 'string') continue
    isOfImport ||= isImported(id)
    log.parents.set(id, parent)
    if (parent === undefined || type === 'label' || type === 'session_info') continue
    if (!isImported(id)) log.place = id
    else if (log.place === null || (log.place !== undefined && isImported(log.place))) log.place = undefined
  }
  return log
}

interface Place {
  parent_id?: string | null
  leaf?: { target_id?: string | null }
}

async function moveTo(session: Session, target: string): Promise<void> {
  if (session.leafId !== target) await session.branch(target)
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

/** An entry that is added again has counted already. */
function withoutUsage(draft: EntryDraft | RecordDraft): EntryDraft | RecordDraft {
  if (draft.type !== 'message' || !draft.message.usage) return draft
  const { usage: _, ...message } = draft.message
  return { ...draft, message }
}
