import type { LeafRecord, Line } from '@tapetree/session/format'
import type { RestoreRecord } from '@tapetree/session/view'
import type { LineFold } from './follow-log.ts'

interface Move {
  /** The leaf before and after; absent if only files went back. */
  talk?: { from: string | null; to: string | null }
  restoreId?: string
}

/** The conversation's part of a restore that has not ended. */
interface OpenMove {
  restoreId: string
  /** The tree that was wanted. A restore that is undone ends with another one. */
  to: string
  /** The leaf when the restore started. */
  from: string | null
  isMoved: boolean
  /** The user continued the conversation or moved elsewhere meanwhile. */
  isOvertaken: boolean
}

/** The moves back in the conversation and in the files that can be taken back, oldest first. */
export class RewindMoves implements LineFold {
  #moves: Move[] = []
  #open: OpenMove | undefined
  #leafId: string | null = null

  get last(): Move | undefined {
    return this.#moves.at(-1)
  }

  get open(): Readonly<OpenMove> | undefined {
    return this.#open
  }

  apply(line: Line): void {
    if (line.type === 'restore') this.#takeRestore(line.restore)
    else if (line.type === 'leaf') this.#takeLeaf(line.leaf)
    else if (line.type === 'message' || line.type === 'compaction' || line.type === 'branch_summary') {
      this.#moves = []
      if (this.#open) this.#open.isOvertaken = true
      this.#leafId = line.id
    } else if ('parentId' in line && line.type !== 'label' && line.type !== 'session_info') this.#leafId = line.id
  }

  #takeRestore({ phase, restoreId, undoes, to }: RestoreRecord['restore']): void {
    if (phase === 'start') {
      this.#open = { restoreId, to, from: this.#leafId, isMoved: false, isOvertaken: false }
      return
    }
    const isUndone = this.#open?.to !== to
    this.#open = undefined
    if (isUndone) return
    if (undoes !== undefined) this.#moves = this.#moves.filter((move) => move.talk || move.restoreId !== undoes)
    else if (!this.#moves.some((move) => move.restoreId === restoreId)) this.#moves.push({ restoreId })
  }

  #takeLeaf({ targetId, rewind: kind, restoreId }: LeafRecord['leaf']): void {
    if (this.#open) {
      if (restoreId === this.#open.restoreId) this.#open.isMoved = true
      else this.#open.isOvertaken = true
    }
    if (kind === 'redo')
      this.#moves = this.#moves.slice(
        0,
        this.#moves.findLastIndex(({ talk }) => talk),
      )
    else if (kind === 'undo') {
      // Older logs end the restore first.
      if (restoreId !== undefined) this.#moves = this.#moves.filter((move) => move.restoreId !== restoreId)
      const talk = { from: this.#leafId, to: targetId }
      this.#moves.push({ talk, ...(restoreId !== undefined && { restoreId }) })
    } else this.#moves = this.#moves.filter(({ talk }) => !talk)
    this.#leafId = targetId
  }
}
