import { text, type Message, type Usage } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { NewLine } from './import-source.ts'

/** Collects the lines of one source line, and remembers where the conversation goes on. */
export class Chain {
  /** The entry that the next one follows. */
  tip: string | null = null
  started: string | undefined
  #now = '1970-01-01T00:00:00.000Z'
  #lines: NewLine[] = []
  /** The entry before each entry. */
  readonly #parents = new Map<string, string | null>()
  /** Entries on whose path someone spoke before the model. */
  readonly #opened = new Set<string>()
  readonly #uses = new Map<string, number>()

  /** The time of the source line. Lines without one have the time of the line before. */
  at(timestamp: string | undefined): void {
    if (timestamp === undefined) return
    this.#now = timestamp
    this.started ??= timestamp
  }

  /** A key that was not used before: the same id again is another line. */
  key(id: string): string {
    const use = (this.#uses.get(id) ?? 0) + 1
    this.#uses.set(id, use)
    return use === 1 ? id : `${id} ${use}`
  }

  parentOf(key: string): string | null {
    return this.#parents.get(key) ?? null
  }

  /** Adds a node of the tree. By default it follows the last one. */
  add(id: string, draft: EntryDraft, options: { parent?: string | null; names?: NewLine['names'] } = {}): string {
    const { parent = this.tip, names } = options
    const key = this.key(id)
    this.#lines.push({ key, parent, timestamp: this.#now, draft, ...(names && { names }) })
    this.#parents.set(key, parent)
    if (opens(draft) || (parent !== null && this.#opened.has(parent))) this.#opened.add(key)
    this.tip = key
    return key
  }

  /** No provider accepts a conversation that the model begins: if its beginning was lost, a message says so. */
  say(id: string, message: Message, { parent = this.tip }: { parent?: string | null } = {}): string {
    const isOpened = parent !== null && this.#opened.has(parent)
    if (message.role !== 'assistant' || isOpened) return this.add(id, { type: 'message', message }, { parent })
    const lost: Message = {
      role: 'custom',
      content: [text('The beginning of this conversation could not be imported.')],
    }
    const before = this.add(`${id} beginning`, { type: 'message', message: lost }, { parent })
    return this.add(id, { type: 'message', message }, { parent: before })
  }

  /** A note or a record: never a parent. */
  note(id: string, draft: EntryDraft | RecordDraft, names?: NewLine['names']): void {
    this.#lines.push({ key: this.key(id), parent: this.tip, timestamp: this.#now, draft, ...(names && { names }) })
  }

  /** Tokens and costs that belong to no message. */
  spend(id: string, tokens: Usage | undefined, model: { provider?: string; model?: string } = {}): void {
    if (tokens) this.note(id, { type: 'usage', usage: { purpose: 'imported', ...model, tokens } })
  }

  /** How many lines the source line has become so far. */
  get size(): number {
    return this.#lines.length
  }

  /** Hands over what the line has become. */
  take(): NewLine[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }
}

/** Whether an entry is sent as a message of the user. */
function opens(draft: EntryDraft): boolean {
  if (draft.type === 'compaction' || draft.type === 'branch_summary') return true
  if (draft.type !== 'message') return false
  const { role, content, bashExecution } = draft.message
  if (role === 'assistant' || role === 'tool') return false
  if (bashExecution) return bashExecution.excludeFromContext !== true
  return content.some((block) => (block.type === 'text' ? block.text.content.trim() !== '' : block.type === 'image'))
}
