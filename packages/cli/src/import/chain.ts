import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { NewLine } from './import-source.ts'
import type { Message, Usage } from '@tapetree/session'

/** Collects the lines of one source line, and remembers where the conversation goes on. */
export class Chain {
  /** The entry that the next one follows. */
  tip: string | null = null
  started: string | undefined
  #now = '1970-01-01T00:00:00.000Z'
  #lines: NewLine[] = []
  /** The entry before each entry. */
  readonly #parents = new Map<string, string | null>()
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

  has(key: string): boolean {
    return this.#parents.has(key)
  }

  parentOf(key: string): string | null {
    return this.#parents.get(key) ?? null
  }

  /** Adds a node of the tree. By default it follows the last one. */
  add(
    id: string,
    draft: EntryDraft,
    options: { parent?: string | null; names?: NewLine['names']; aside?: boolean } = {},
  ): string {
    const { parent = this.tip, names, aside = false } = options
    const key = this.key(id)
    this.#lines.push({ key, parent, timestamp: this.#now, draft, ...(names && { names }) })
    this.#parents.set(key, parent)
    if (!aside) this.tip = key
    return key
  }

  say(id: string, message: Message, options: { parent?: string | null; aside?: boolean } = {}): string {
    return this.add(id, { type: 'message', message }, options)
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
