import { SessionError, type Content, type Message, type Session, type SessionStore } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { Redactor } from '@tapetree/agent/settings'
import {
  dropReasons,
  mergeReasons,
  type DropReason,
  type Fate,
  type MergeReason,
  type NewLine,
} from './import-source.ts'
import { hashOf } from './source-lines.ts'
import { sources, type FoundSession } from './sources.ts'

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
  const tally: LineTally = { lines: 0, kept: 0, merged: {}, dropped: {} }
  const reader = sources[found.source].reader()
  const lines: NewLine[] = []
  for await (const line of found.lines(options.signal)) {
    const taken =
      line.type === 'read'
        ? reader.take(line)
        : { kind: 'unreadable', fate: { type: 'dropped' as const, reason: line.reason }, lines: [] }
    count(tally, taken.fate)
    options.onLine?.({ number: line.number, kind: taken.kind, fate: taken.fate })
    lines.push(...taken.lines)
  }
  const nothing = { id, tally, added: 0, closed: 0 }
  if (!lines.some(({ draft }) => 'message' in draft || draft.type === 'compaction'))
    return { ...nothing, outcome: 'empty' }
  if (options.putAway?.has(id)) return { ...nothing, outcome: 'put-away' }
  const target = await openTarget(found, { id, started: reader.started, ...options })
  if (target === 'busy') return { ...nothing, outcome: 'busy' }
  try {
    const writer = new SessionImport(
      id,
      { lines: [originOf(found, lines), ...lines], leaf: reader.leaf },
      { ...options, found },
    )
    const { added, closed } = await writer.write(target.session)
    const outcome = target.isNew ? 'imported' : added + closed > 0 ? 'updated' : 'unchanged'
    return { id, tally, added, closed, outcome }
  } catch (error) {
    // What was written stays: the next import goes on from there.
    throw error instanceof SessionError
      ? error
      : new Error(`Session ${found.session.id} of ${found.path} could not be imported.`, { cause: error })
  } finally {
    await target.session?.close()
  }
}

export function sessionIdOf(source: string, id: string): string {
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

/** All reasons, for checks. */
export const reasons = { ...mergeReasons, ...dropReasons }

async function openTarget(
  { source, session }: FoundSession,
  { store, id, started, dryRun = false }: ImportOptions & { id: string; started: string | undefined },
): Promise<{ session: Session | undefined; isNew: boolean } | 'busy'> {
  const existing = await store.open(id, { readOnly: dryRun }).catch((error: unknown) => {
    if (error instanceof SessionError && error.code === 'session-not-found') return undefined
    throw error
  })
  if (existing) {
    if (dryRun || existing.readOnlyReason === undefined) return { session: existing, isNew: false }
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

/** The first entry says where the session comes from. */
function originOf({ source, session }: FoundSession, lines: readonly NewLine[]): NewLine {
  const draft: EntryDraft = { type: 'custom', custom: { customType: 'import', data: { source, session: session.id } } }
  return { key: originKey, parent: null, timestamp: lines[0]?.timestamp ?? new Date(0).toISOString(), draft }
}

interface WriterOptions extends ImportOptions {
  found: FoundSession
}

/** Appends what a session does not have yet. */
class SessionImport {
  readonly #id: string
  readonly #lines: readonly NewLine[]
  readonly #leaf: string | null
  readonly #options: WriterOptions

  constructor(id: string, { lines, leaf }: { lines: readonly NewLine[]; leaf: string | null }, options: WriterOptions) {
    this.#id = id
    this.#lines = lines
    this.#leaf = leaf
    this.#options = options
  }

  /** Without a session, only counts. */
  async write(session: Session | undefined): Promise<{ added: number; closed: number }> {
    const present = session ? await idsOf(session) : new Set<string>()
    const missing = this.#lines.filter(({ key }) => !present.has(this.#idOf(key)))
    const closings = this.#closings().filter(({ key }) => !present.has(this.#idOf(key)))
    const closed = closings.reduce((sum, { draft }) => sum + contentOf(draft).length, 0)
    if (!session || this.#options.dryRun) return { added: missing.length, closed }
    const leafBefore = session.leafId
    if (missing.length > 0) await session.loadTree()
    for (let start = 0; start < missing.length; start += batch) {
      this.#options.signal?.throwIfAborted()
      await this.#append(session, missing.slice(start, start + batch))
    }
    await this.#append(session, closings)
    await this.#moveLeaf(session, leafBefore)
    return { added: missing.length, closed }
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
    const { title } = sources[this.#options.found.source]
    const nodes = new Map(this.#lines.filter(({ draft }) => isNode(draft)).map((line) => [line.key, line]))
    const ends = new Set(nodes.keys())
    for (const { parent } of nodes.values()) if (parent !== null) ends.delete(parent)
    return [...ends].flatMap((end) => {
      const open = openCalls(nodes, end)
      const last = nodes.get(end)
      if (open.length === 0 || !last) return []
      const content = open.map((toolUseId): Content => {
        const said = `No result: ${title} stopped before this call had ended, or still ran it when the session was imported.`
        return { type: 'tool_result', toolResult: { toolUseId, isError: true, content: said } }
      })
      const draft: EntryDraft = { type: 'message', message: { role: 'tool', content } }
      return [{ key: closingKey(end), parent: end, timestamp: last.timestamp, draft }]
    })
  }

  /** To where the source goes on, unless someone went on here. */
  async #moveLeaf(session: Session, before: string | null): Promise<void> {
    const ours = new Set<string | null>([null])
    for (const { key } of this.#lines) ours.add(this.#idOf(key)).add(this.#idOf(closingKey(key)))
    const closing = this.#leaf === null ? undefined : this.#closings().find(({ parent }) => parent === this.#leaf)
    const wanted = closing?.key ?? this.#leaf ?? originKey
    const target = ours.has(before) ? this.#idOf(wanted) : before
    if (session.leafId !== target) await session.branch(target)
  }

  #idOf(key: string): string {
    return idFrom(this.#id, key)
  }
}

const batch = 256
const originKey = 'origin'

function closingKey(key: string): string {
  return `closed ${key}`
}

function isNode(draft: EntryDraft | RecordDraft): boolean {
  return ['message', 'custom', 'compaction', 'branch_summary'].includes(draft.type)
}

/** The calls on the way to an entry that have no result, up to the last message of the user. */
function openCalls(nodes: ReadonlyMap<string, NewLine>, end: string): string[] {
  const answered = new Set<string>()
  const calls: string[] = []
  for (let line = nodes.get(end); line; line = line.parent === null ? undefined : nodes.get(line.parent)) {
    for (const block of contentOf(line.draft)) {
      if (block.type === 'tool_result') answered.add(block.toolResult.toolUseId)
      if (block.type === 'tool_use') calls.push(block.toolUse.id)
    }
    if (line.draft.type === 'message' && line.draft.message.role === 'user') break
  }
  return [...new Set(calls.reverse())].filter((call) => !answered.has(call))
}

function contentOf(draft: EntryDraft | RecordDraft): readonly Content[] {
  return draft.type === 'message' ? draft.message.content : []
}

/** The ids of all lines of a session. */
async function idsOf(session: Session): Promise<Set<string>> {
  const ids = new Set<string>()
  for await (const line of session.lines()) {
    if (line.type !== 'line') continue
    const { id } = JSON.parse(line.text) as { id?: unknown }
    if (typeof id === 'string') ids.add(id)
  }
  return ids
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
