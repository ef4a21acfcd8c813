import type { EntryDraft, RecordDraft } from '../line/line.ts'

/** The one step between what is said and what is kept: nothing is written that has not passed it. */
export interface Redaction {
  draft<D extends EntryDraft | RecordDraft>(draft: D): D
  blob(bytes: Uint8Array): Uint8Array
}

export const noRedaction: Redaction = { draft: (draft) => draft, blob: (bytes) => bytes }
