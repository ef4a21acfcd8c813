import type { Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'

/** A value that is computed from the lines of a session, in their order. */
export interface LineFold {
  apply(line: Line): void
}

interface Followed {
  fold: LineFold
  /** The seq of the last line that was applied. */
  seq: number
  /** Calls read one after the other. */
  last: Promise<unknown>
}

const followed = new WeakMap<object, Map<new () => LineFold, Followed>>()

/**
 * The fold of all lines of a session. It is kept as long as the session is open, so that a later call reads only the lines
 * that were appended since.
 */
export async function followLog<Fold extends LineFold>(session: Session, make: new () => Fold): Promise<Fold> {
  const { sharedKey } = session
  const folds = followed.get(sharedKey) ?? new Map<new () => LineFold, Followed>()
  followed.set(sharedKey, folds)
  const known = folds.get(make) ?? { fold: new make(), seq: 0, last: Promise.resolve() }
  folds.set(make, known)
  const read = known.last.then(async () => {
    for await (const line of linesOf(session, { after: known.seq })) {
      known.fold.apply(line)
      known.seq = line.seq
    }
  })
  known.last = read.catch(() => undefined)
  await read
  return known.fold as Fold
}

/** The readable lines of a session after a seq. */
export async function* linesOf(session: Session, options: { after?: number } = {}): AsyncGenerator<Line> {
  for await (const stored of session.lines(options))
    if (stored.type === 'line') yield fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
}
