import { checkLine } from '../line/check-line.ts'
import type { CommitListener } from '../log/group-commit.ts'
import type { Context, ReasoningPolicy } from '../view/context.ts'
import { buildContext } from '../view/context.ts'
import type { Cause, Entry, Header } from '../line/entry.ts'
import { fromDisk, payloadFromDisk } from '../line/codec.ts'
import { SessionError } from '../errors.ts'
import { isObject } from '../util/json.ts'
import type { InboxHold, WaitingMessage } from '../state/inbox.ts'
import type { DiskLine, EntryDraft, Line, RecordDraft } from '../line/line.ts'
import type { LogLine } from '../log/log-lines.ts'
import { readLogLines } from '../log/log-lines.ts'
import type { Owner } from '../log/log-store.ts'
import type { HeldSession, LeaveOptions } from './open-sessions.ts'
import {
  text,
  type BlobReference,
  type Content,
  type Message,
  type MessageInput,
  type MessageRole,
} from '../line/message.ts'
import { parseLine } from '../line/parse-line.ts'
import type {
  BashStartRecord,
  Delivery,
  PermissionRequestRecord,
  PlanRecord,
  LeafRecord,
  RestoreRecord,
  RunStartRecord,
  SnapshotRecord,
  SubmissionChange,
  WorkingCopyRecord,
  WorkspaceFilesRecord,
  WorkspaceRecord,
} from '../line/record.ts'
import { Player } from '../view/player.ts'
import { makeSnapshot, type SessionSnapshot, type SnapshotOptions } from './snapshot.ts'
import { SessionInbox, type SubmitOptions } from './session-inbox.ts'
import { sessionInfoOf, type SessionInfo } from '../state/session-info.ts'
import type { HeaderOptions } from './session-maker.ts'
import type { Redaction, AppendContext, DraftInContext, SessionWriter, StorageStatus } from '../log/session-writer.ts'
import type { SessionReader } from '../log/session-reader.ts'
import type { Damage, OpenRun } from '../state/session-state.ts'
import { contextPathTo, type Node } from '../state/tree.ts'
import { buildTree, type TreeNode } from '../view/tree-view.ts'

export interface SessionParts {
  id: string
  reader: SessionReader
  /** Absent if the session is open for reading only. */
  held?: HeldSession
  owner?: Owner
  path?: string
  /** Copies the path to a leaf, or all entries, into a new session and returns its id. */
  copy: (source: { leafId?: string; options?: HeaderOptions }) => Promise<string>
  completeCopy: (copy: { id: string; leafId?: string }) => Promise<void>
  /** Releases the opened session. */
  release: (options?: LeaveOptions) => Promise<void>
  /** Absent if the log lies outside a store. */
  erase?: () => Promise<Erased>
}

export interface Erased {
  /**
   * The sessions that were made from the erased one and still contain copies of its entries: forks, imports of its
   * packs, and the sessions of its subagents.
   */
  forks: string[]
}

export type { StorageStatus } from '../log/session-writer.ts'

type PermissionRequest = PermissionRequestRecord['permissionRequest']

export interface SessionTotals {
  turns: number
  toolCalls: number
  /** Total duration of the runs that have ended. */
  runMs: number
  tokens: number
  /** In US dollars. */
  cost: number
}

/** `rewind` marks a move that can be taken back; `restoreId` names the restore of files that belongs to it. */
export type BranchOptions = AppendContext & Pick<LeafRecord['leaf'], 'rewind' | 'restoreId'>

export interface AppendedMessage extends AppendContext {
  /** Additional members of the message: model, usage, run and so on. */
  with?: Omit<Partial<Message>, 'role' | 'content'>
}

/** One conversation: an append-only log, its tree, and its leaf. */
export class Session {
  readonly id: string
  readonly path: string | undefined
  /** The current writer, if it is another process. */
  readonly owner: Owner | undefined
  readonly #reader: SessionReader
  readonly #held: HeldSession | undefined
  readonly #parts: SessionParts
  readonly #inbox: SessionInbox
  readonly #unsubscribe = new Set<() => void>()
  #isClosed = false

  /** @internal Sessions come from a store. */
  constructor(parts: SessionParts) {
    this.id = parts.id
    this.path = parts.path
    this.owner = parts.owner
    this.#reader = parts.reader
    this.#held = parts.held
    this.#inbox = new SessionInbox({
      sessionId: parts.id,
      reader: parts.reader,
      taken: parts.held?.taken ?? new Map(),
      planned: parts.held?.planned ?? new Map(),
      append: async (draft, cause) => this.#writable().append(draft, cause && { cause }),
    })
    this.#parts = parts
  }

  // State

  get header(): Header | undefined {
    const { header } = this.#reader.state
    return header && (fromDisk(header, 1) as Header)
  }

  get leafId(): string | null {
    return this.#reader.state.leaf?.id ?? null
  }

  get name(): string {
    return this.#reader.state.name
  }

  /** The last durable line; clients use it as a cursor. */
  get head(): { seq: number; crc: string } {
    const { seq, crc } = this.#reader.state.last
    return { seq, crc }
  }

  get info(): SessionInfo {
    return sessionInfoOf(this.#reader.state, { id: this.id, ...(this.path !== undefined && { path: this.path }) })
  }

  /** Total usage of the session. */
  get totals(): SessionTotals {
    const { turns, toolCalls, runMs, usage } = this.#reader.state.totals
    return {
      turns,
      toolCalls,
      runMs,
      tokens: usage.total_tokens || usage.input_tokens + usage.output_tokens,
      cost: usage.cost,
    }
  }

  get openRun(): OpenRun | null {
    return this.#reader.state.run
  }

  /** The newest start of the open run: its process, and how often it was resumed. Undefined if no run is open. */
  get openRunStart(): RunStartRecord['runStart'] | undefined {
    const { run, facts } = this.#reader.state
    return run && facts.run?.seq === run.seq
      ? (payloadFromDisk('run_start', facts.run.payload) as unknown as RunStartRecord['runStart'])
      : undefined
  }

  /** Ranges that could not be read. `isNew` damage has not been acknowledged. */
  get damage(): readonly (Damage & { isNew: boolean })[] {
    const { damage, damageSeenThrough } = this.#reader.state
    return damage.map((each) => ({ ...each, isNew: each.seq > damageSeenThrough }))
  }

  /** Why this session cannot be written to; undefined if it can. */
  get readOnlyReason(): string | undefined {
    if (this.#reader.state.newer !== undefined) return this.#reader.state.newer
    if (!this.#held) return this.owner?.reason ?? 'It was opened for reading only.'
    return undefined
  }

  /** The error of the last append; cleared when one succeeds. */
  get storageFailure(): SessionError | undefined {
    return this.#held?.writer.failure
  }

  /** Whether lines reach the storage. A session that is open for reading only stores nothing. */
  get storage(): StorageStatus {
    return this.#held?.writer.storage ?? { type: 'working' }
  }

  get inbox(): { messages: readonly WaitingMessage[]; hold: InboxHold | null } {
    const { messages, hold } = this.#inbox
    return { messages, hold }
  }

  get pendingPermissions(): PermissionRequest[] {
    return this.#reader.state.permissions.pending.map(
      ({ payload }) => payloadFromDisk('permission_request', payload) as unknown as PermissionRequest,
    )
  }

  /** The items of the newest plan. */
  get plan(): PlanRecord['plan']['items'] {
    const { plan } = this.#reader.state.facts
    return plan ? (payloadFromDisk('plan', plan.payload)['items'] as PlanRecord['plan']['items']) : []
  }

  /** The files of the workspace as they were last recorded. */
  get lastSnapshot(): SnapshotRecord['snapshot'] | undefined {
    const { snapshot } = this.#reader.state.facts
    return snapshot ? (payloadFromDisk('snapshot', snapshot.payload) as SnapshotRecord['snapshot']) : undefined
  }

  /** A restore of files that was interrupted. */
  get openRestore(): RestoreRecord['restore'] | undefined {
    const { openRestore } = this.#reader.state.facts
    return openRestore ? (payloadFromDisk('restore', openRestore.payload) as RestoreRecord['restore']) : undefined
  }

  /** Commands of the user that started and have no message yet: they run, or their process has died. */
  get openCommands(): (BashStartRecord['bashStart'] & { cause?: Cause })[] {
    return [...this.#reader.state.facts.commands.values()].map(({ payload, cause }) => ({
      ...(payloadFromDisk('bash_start', payload) as BashStartRecord['bashStart']),
      ...(isObject(cause) && { cause: cause as unknown as Cause }),
    }))
  }

  /** The copy of its folder in which the session works, or last worked if the record has an outcome. */
  get workingCopy(): WorkingCopyRecord['workingCopy'] | undefined {
    const { workingCopy } = this.#reader.state.facts
    return workingCopy
      ? (payloadFromDisk('working_copy', workingCopy.payload) as unknown as WorkingCopyRecord['workingCopy'])
      : undefined
  }

  /** The folder of another machine in which the tools of the session work. Undefined: they work in its own folder. */
  get workspace(): WorkspaceRecord['workspace'] | undefined {
    const { workspace } = this.#reader.state.facts
    return workspace
      ? (payloadFromDisk('workspace', workspace.payload) as unknown as WorkspaceRecord['workspace'])
      : undefined
  }

  /** The files of a workspace of another machine as they were last kept, and when. */
  get workspaceFiles(): (WorkspaceFilesRecord['workspaceFiles'] & { timestamp: string }) | undefined {
    const { workspaceFiles: kept } = this.#reader.state.facts
    if (!kept) return undefined
    const files = payloadFromDisk('workspace_files', kept.payload) as unknown as WorkspaceFilesRecord['workspaceFiles']
    return { ...files, timestamp: kept.timestamp }
  }

  get grants(): readonly Record<string, unknown>[] {
    return this.#reader.state.permissions.grants
  }

  /** The permission mode in the log; undefined if none was recorded. */
  get permissionMode(): string | undefined {
    return this.#reader.state.permissions.mode
  }

  /** Why the agent chose that mode, such as a sandbox that does not work; undefined if the user chose it. */
  get permissionModeReason(): string | undefined {
    return this.#reader.state.permissions.modeReason
  }

  get localFolder(): string | undefined {
    return this.#reader.log.localFolder
  }

  /**
   * The same object for every handle that writes this session in this process. Use it as a key for state that
   * openers share, such as the run. A read-only handle has a key of its own.
   */
  get sharedKey(): object {
    return this.#held ?? this
  }

  /** The seq of the line that a client command caused; undefined if it has had no effect. */
  effectOf(command: string): number | undefined {
    return this.#reader.state.commands.seqOf(command)
  }

  // Writing

  /** Appends a node, a note or a record; resolves when it is durable. */
  async append(draft: EntryDraft | RecordDraft, context?: AppendContext): Promise<Line> {
    const { line, sealed } = await this.#writable().append(draft, context)
    return fromDisk(line, sealed.seq)
  }

  /**
   * Appends lines that belong together with one write, if they are small; resolves when all are durable. Nothing is appended if one of
   * them is invalid. After a crash, the log may contain only the first of them.
   */
  async appendAll(drafts: readonly DraftInContext[]): Promise<Line[]> {
    const committed = await this.#writable().appendAll(drafts)
    return committed.map(({ line, sealed }) => fromDisk(line, sealed.seq))
  }

  /** Rejects with `invalid-entry` and the reason if the role or the content is malformed. */
  appendMessage(role: MessageRole, content: MessageInput, options?: AppendedMessage): Promise<string> {
    // The writer converts every accepted form of content to blocks.
    const message = { role, content: content as Content[], ...options?.with }
    return this.#appendEntry({ type: 'message', message }, options)
  }

  async appendThinkingLevelChange(level: string, context?: AppendContext): Promise<string> {
    return this.#appendEntry({ type: 'thinking_level', thinkingLevel: { thinkingLevel: level } }, context)
  }

  async appendModelChange(provider: string, modelId: string, context?: AppendContext): Promise<string> {
    return this.#appendEntry({ type: 'model_change', modelChange: { provider, modelId } }, context)
  }

  /** Rejects if `firstKeptId` is not in the current context: the summary would hide entries that it does not cover. */
  async appendCompaction(
    summary: string,
    firstKeptId: string,
    tokensBefore: number,
    context?: AppendContext,
  ): Promise<string> {
    const path = await this.#reader.ask((state) => contextPathTo(state.leaf))
    if (!path.nodes.some((node) => node.id === firstKeptId)) {
      throw new SessionError(
        'not-in-context',
        `Entry ${firstKeptId} is not in the current context of session ${this.id}.`,
      )
    }
    const compaction = { summary, firstKeptEntryId: firstKeptId, tokensBefore }
    return this.#appendEntry({ type: 'compaction', compaction }, context)
  }

  async appendSessionInfo(name: string, context?: AppendContext): Promise<string> {
    return this.#appendEntry({ type: 'session_info', sessionInfo: { name } }, context)
  }

  async appendCustomEntry(customType: string, data: Record<string, unknown>, context?: AppendContext): Promise<string> {
    return this.#appendEntry({ type: 'custom', custom: { customType, data } }, context)
  }

  /** Bookmarks an entry; an empty label removes the bookmark. */
  async setLabel(targetId: string, label: string, context?: AppendContext): Promise<string> {
    await this.#reader.nodeOf(targetId)
    return this.#appendEntry({ type: 'label', label: { targetId, label } }, context)
  }

  /** Stores bytes durably by content, so that a line may refer to them. */
  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    const { log, writer } = this.#writableSession()
    return log.putBlob(writer.redaction.blob(bytes))
  }

  async getBlob(sha256: string): Promise<Uint8Array> {
    const bytes = await this.#reader.log.getBlob(sha256)
    if (!bytes) throw new SessionError('blob-missing', `Blob ${sha256} of session ${this.id} is missing.`)
    return bytes
  }

  /** Redacts everything that any handle in this process writes to this session from now on. */
  redactWith(redaction: Redaction): void {
    this.#writableSession().writer.redaction = redaction
  }

  // Navigation

  /** Moves the leaf; the next entry becomes a child of this one. `null` is before the first entry. */
  async branch(entryId: string | null, { rewind, restoreId, ...context }: BranchOptions = {}): Promise<void> {
    this.#refuseWhileRunning('branch')
    if (entryId !== null) await this.#branchTarget(entryId)
    const about = { ...(rewind && { rewind }), ...(restoreId !== undefined && { restoreId }) }
    await this.#writable().append({ type: 'leaf', leaf: { targetId: entryId, ...about } }, context)
  }

  /** Moves the leaf and appends a summary of the abandoned branch, in one line. */
  async branchWithSummary(branchFromId: string | null, summary: string, context?: AppendContext): Promise<string> {
    this.#refuseWhileRunning('branch')
    if (branchFromId !== null) await this.#branchTarget(branchFromId)
    const fromId = this.#writable().plannedLeaf
    const draft: EntryDraft = { type: 'branch_summary', branchSummary: { summary, fromId } }
    return this.#appendEntry(draft, { ...context, parentId: branchFromId })
  }

  /** Copies the path to an entry into a new session and returns its id. */
  async createBranchedSession(leafId: string, options: HeaderOptions = {}): Promise<string> {
    await this.#reader.nodeOf(leafId)
    return this.#parts.copy({ leafId, options })
  }

  /** Copies all entries into a new session and returns its id. */
  async copyAll(options: HeaderOptions = {}): Promise<string> {
    return this.#parts.copy({ options })
  }

  /**
   * Adds to a copy of this session what it lacks because its making was interrupted; `leafId` as it was given then. Leaves a copy alone that is
   * whole or was used since. Rejects with `session-owned` if another process writes it.
   */
  async completeCopy(id: string, leafId?: string): Promise<void> {
    await this.#parts.completeCopy({ id, ...(leafId !== undefined && { leafId }) })
  }

  // Reading

  /** What the model sees at the leaf or at another entry, with the source entry of each part. */
  async getContext(options: { leafId?: string | null; reasoning?: ReasoningPolicy } = {}): Promise<Context> {
    const { leafId, reasoning } = options
    if (typeof leafId === 'string') await this.#reader.nodeOf(leafId)
    return this.#reader.ask(async (state) => {
      const leaf = leafId === undefined ? state.leaf : leafId === null ? null : (state.tree.get(leafId) ?? null)
      const path = contextPathTo(leaf)
      return buildContext({
        path: await this.#reader.entriesOf(path.nodes),
        compaction: await this.#entryOf(path.compaction, 'compaction'),
        system: await this.#entryOf(leaf?.inForce.system, 'system'),
        model: await this.#entryOf(leaf?.inForce.model, 'model_change'),
        thinking: await this.#entryOf(leaf?.inForce.thinking, 'thinking_level'),
        keptIsMissing: path.keptIsMissing,
        ...(reasoning && { reasoning }),
      })
    })
  }

  /**
   * The model and the thinking level in force at the leaf. Reads at most two lines, regardless of the session's
   * length.
   */
  async getModelChoice(): Promise<Pick<Context, 'model' | 'thinkingLevel'>> {
    return this.#reader.ask(async ({ leaf }) => {
      const model = await this.#entryOf(leaf?.inForce.model, 'model_change')
      const thinking = await this.#entryOf(leaf?.inForce.thinking, 'thinking_level')
      return {
        model: model?.modelChange ?? null,
        thinkingLevel: thinking?.thinkingLevel.thinkingLevel ?? null,
      }
    })
  }

  /** The entries of the context path, oldest first; input for cut points. */
  async getContextPath(): Promise<Entry[]> {
    return this.#reader.ask((state) => this.#reader.entriesOf(contextPathTo(state.leaf).nodes))
  }

  async getEntry(entryId: string): Promise<Entry> {
    return this.#reader.ask(async () => {
      const [entry] = await this.#reader.entriesOf([await this.#reader.nodeOf(entryId)])
      return entry as Entry
    })
  }

  /** Reads the whole log, so that lines can be appended anywhere in the tree and name any entry. */
  async loadTree(): Promise<void> {
    await this.#reader.readWhole()
  }

  /** The whole session as a tree. Reads the whole log. */
  async getTree(): Promise<TreeNode[]> {
    await this.#reader.readWhole()
    const { tree, labels } = this.#reader.state
    return buildTree(tree, labels, (nodes) => this.#reader.entriesOf(nodes))
  }

  getLabels(): Map<string, string> {
    return new Map(this.#reader.state.labels)
  }

  /** Start data for a screen: the session's state, and the newest entries of its path. */
  async snapshot(options: SnapshotOptions): Promise<SessionSnapshot> {
    return makeSnapshot(this.#reader, options)
  }

  /** The stored lines after a cursor, byte for byte, up to the last durable one. */
  lines(options: { after?: number } = {}): AsyncIterable<LogLine> {
    const isDamaged = this.#reader.state.damageCount > 0
    return readLogLines(this.#reader.log, {
      after: options.after ?? 0,
      through: () => this.#reader.state.seq,
      isDamaged,
    })
  }

  /** The newest line that could be read, without those before it. */
  async lastLine(): Promise<Line | undefined> {
    const { last } = this.#reader.state
    const [bytes] = last.seq === 0 ? [] : await this.#reader.log.readAt([last])
    const parsed = bytes && parseLine(bytes)
    return parsed?.type === 'line' ? fromDisk(parsed.line, last.seq) : undefined
  }

  /** A player for the session, from the first line to the last durable one. */
  async play(): Promise<Player> {
    const lines: Line[] = []
    for await (const line of this.lines()) {
      if (line.type === 'line') lines.push(checkLine(fromDisk(JSON.parse(line.text) as DiskLine, line.seq)))
    }
    return new Player(lines)
  }

  /** Calls the listener for every line when it is durable. */
  subscribe(listener: CommitListener): () => void {
    return this.#until(this.#writableSession().listeners.add(listener))
  }

  /** Calls the listener when lines begin to wait for the storage, when they are stored again, and when the storage fails. */
  onStorageChange(listener: (status: StorageStatus) => void): () => void {
    return this.#until(this.#held?.writer.onStorageChange.add(listener) ?? noop)
  }

  /** A registration that ends with this handle, or before. */
  #until(remove: () => void): () => void {
    const stop = (): void => {
      remove()
      this.#unsubscribe.delete(stop)
    }
    this.#unsubscribe.add(stop)
    return stop
  }

  /**
   * Call it directly before an effect that must not happen twice. Undefined: this process owns the session for sure, as long as the effect
   * is in the same step. Otherwise it may have been paused for so long that another process could take over: wait, and call it again. Rejects
   * with `fenced` if one has.
   */
  confirmOwner(): Promise<void> | undefined {
    return this.#writableSession().log.confirm?.()
  }

  /** The current writer, if it can be determined without claiming; undefined if there is none or it is unknown. */
  async currentOwner(): Promise<Owner | undefined> {
    return this.#reader.log.owner?.()
  }

  /** Resolves when the log may have grown, or the signal aborts. */
  async changed(signal: AbortSignal): Promise<void> {
    await this.#reader.log.changed(signal)
  }

  /** Applies new lines of a session that another process writes. */
  async refresh(): Promise<void> {
    if (!this.#held) await this.#reader.refresh()
  }

  // Queued messages

  /** Accepts a message for later delivery. */
  async submit(message: string, options: SubmitOptions = {}): Promise<WaitingMessage> {
    return this.#inbox.submit(message, options)
  }

  /** Changes the queued messages. Rejects with `message-not-found` if the named one is not queued. */
  async changeInbox(change: SubmissionChange, cause?: Cause): Promise<void> {
    await this.#inbox.change(change, cause)
  }

  /** The next message that may be delivered; with `onlyReleased`, only among those that a person released. */
  nextWaiting(delivery: Delivery, options?: { onlyReleased?: boolean }): WaitingMessage | undefined {
    return this.#inbox.next(delivery, options)
  }

  /**
   * Delivers a queued message: one line appends it and removes it from the inbox. It is reserved from the call
   * on, also while its images are loaded.
   */
  async deliver(id: string, options?: AppendedMessage & { images?: () => Promise<Content[]> }): Promise<string> {
    const { images, ...context } = options ?? {}
    return this.#inbox.take(id, ({ message }) => {
      const say = (more: Content[]): Promise<string> =>
        this.appendMessage('user', [text(message), ...more], {
          ...context,
          with: { ...context.with, submissionId: id },
        })
      return images ? images().then(say) : say([])
    })
  }

  // Lifetime

  /** Acknowledges the damage found so far. Nothing is truncated or rewritten. */
  async repair(): Promise<number> {
    const found = this.damage.filter((each) => each.isNew)
    if (found.length === 0) return 0
    const places = found.slice(0, 100).map(({ at, size, reason }) => ({ at, size, reason }))
    const lostLines = found.reduce((sum, each) => sum + each.count, 0)
    const throughSeq = this.#reader.state.seq
    await this.#writable().append({ type: 'damage', damage: { throughSeq, lostLines, places } })
    return found.length
  }

  /** Writes the derived files now, as at the end of a run. */
  async saveDerived(): Promise<void> {
    await this.#held?.writer.saveDerived()
  }

  /**
   * Deletes the session for good and closes it, with all other handles of this process. Returns the sessions that
   * still contain copies of its entries. See `SessionStore.erase`.
   */
  async erase(): Promise<Erased> {
    const { erase } = this.#parts
    if (!erase) {
      throw new SessionError('session-not-found', `Session ${this.id} is not in the store. Delete its file instead.`)
    }
    const erased = await erase()
    await this.close()
    return erased
  }

  /**
   * With `handOver`, another process may take over what is unfinished: `SessionStore.openAbandoned` returns the session as if
   * this process had died. Without such a store, or with nothing unfinished, that is the same as without it. With
   * `handOver: false` it is not handed over, whatever other handles of this process say: a process on this machine goes on.
   */
  async close({ handOver }: { handOver?: boolean } = {}): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const stop of this.#unsubscribe) stop()
    const isUnfinished = this.openRun !== null || this.inbox.messages.length > 0 || this.openCommands.length > 0
    await this.#parts.release(handOver === undefined || (handOver && !isUnfinished) ? {} : { handOver })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #appendEntry(draft: EntryDraft, context?: AppendContext): Promise<string> {
    return (await this.#writable().append(draft, context)).line.id
  }

  #writable(): SessionWriter {
    return this.#writableSession().writer
  }

  #writableSession(): HeldSession {
    if (this.#isClosed || this.#held?.isClosed) {
      throw new SessionError('session-closed', `Session ${this.id} is closed.`)
    }
    const { newer } = this.#reader.state
    if (newer !== undefined) throw new SessionError('newer-format', newer)
    if (this.#held) return this.#held
    throw new SessionError('read-only', `Session ${this.id} cannot be written: ${this.readOnlyReason}`)
  }

  #refuseWhileRunning(what: string): void {
    const { run } = this.#reader.state
    if (run) throw new SessionError('session-busy', `Session ${this.id} cannot ${what} while run ${run.runId} is open.`)
  }

  /** Notes are not part of the path, so entries are never appended to one. */
  async #branchTarget(entryId: string): Promise<Node> {
    const node = await this.#reader.nodeOf(entryId)
    if (node.isNote) {
      throw new SessionError('invalid-entry', `Entry ${entryId} is a note; a branch starts at an entry of the tree.`)
    }
    return node
  }

  /** The entry of a node, if it still has the expected type. */
  async #entryOf<T extends Entry['type']>(
    node: Node | null | undefined,
    type: T,
  ): Promise<Extract<Entry, { type: T }> | null> {
    if (!node) return null
    const [entry] = await this.#reader.entriesOf([node])
    return entry?.type === type ? (entry as Extract<Entry, { type: T }>) : null
  }
}

function noop(): void {}
