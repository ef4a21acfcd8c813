import type { Line } from '@tapetree/session/format'
import type { RestoreRecord, SnapshotRecord } from '@tapetree/session/view'
import type { LineFold } from './follow-log.ts'

interface FileMoment {
  tree: string
  /** The number of steps up to this moment. */
  step: number
}

interface FileStep {
  by: SnapshotRecord['snapshot']['by']
  from: string
  to: string
}

/** How the files of a session's workspace changed, in the order of the log. */
export class FileHistory implements LineFold {
  readonly #steps: FileStep[] = []
  readonly #moments = new Map<string, FileMoment>()
  /** By call, the entry with its result. */
  readonly #resultEntries = new Map<string, string>()
  readonly #restores: RestoreRecord['restore'][] = []
  readonly #started = new Map<string, { step: number; to: string }>()
  #first: FileMoment | undefined
  #current: FileMoment | undefined

  /** The files at an entry, or before the first one; undefined if they were not recorded. */
  at(entryId: string | null): FileMoment | undefined {
    return entryId === null ? this.#first : this.#moments.get(entryId)
  }

  /** Every change after a moment. */
  since({ step }: FileMoment): FileStep[] {
    return this.#steps.slice(step)
  }

  /** Every change after a restore. */
  sinceRestore(restoreId: string): FileStep[] {
    return this.#steps.slice(this.#started.get(restoreId)?.step ?? this.#steps.length)
  }

  /** The restores that have ended, oldest first. Those that were interrupted and undone are not among them. */
  get restores(): readonly RestoreRecord['restore'][] {
    return this.#restores
  }

  apply(line: Line): void {
    if (line.type === 'snapshot') this.#takeSnapshot(line.snapshot)
    else if (line.type === 'restore') {
      const { restoreId, phase, to } = line.restore
      // What a restore changed is the first step after its start.
      if (phase === 'start') this.#started.set(restoreId, { step: this.#steps.length, to })
      else if (this.#started.get(restoreId)?.to === to) this.#restores.push(line.restore)
    } else if ('parentId' in line) {
      if (this.#current) this.#moments.set(line.id, this.#current)
      if (line.type !== 'message') return
      for (const block of line.message.content)
        if (block.type === 'tool_result') this.#resultEntries.set(block.toolResult.toolUseId, line.id)
    }
  }

  #takeSnapshot({ tree, by, entryId, callId }: SnapshotRecord['snapshot']): void {
    // The session's own last tree: another session may have recorded other files in between.
    if (this.#current && this.#current.tree !== tree) this.#steps.push({ by, from: this.#current.tree, to: tree })
    this.#current = { tree, step: this.#steps.length }
    this.#first ??= this.#current
    if (entryId !== undefined) this.#moments.set(entryId, this.#current)
    const result = callId === undefined ? undefined : this.#resultEntries.get(callId)
    if (result !== undefined) this.#moments.set(result, this.#current)
  }
}
