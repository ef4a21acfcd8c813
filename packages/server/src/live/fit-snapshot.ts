import { limits } from '@tapetree/client'
import { fromDisk, type DiskLine, type Line, type SessionSnapshot } from '@tapetree/session'

/** What the lines of a snapshot may take of its frame. The rest is for the fold and the state. */
const maxLinesBytes = limits.maxFrameBytes / 2

type SnapshotLine = SessionSnapshot['lines'][number]

/** The snapshot with as many of its newest lines as fit into a frame; the others are paged back to. The newest is always there. */
export function fitSnapshot(snapshot: SessionSnapshot): SessionSnapshot {
  const { lines } = snapshot
  let bytes = 0
  const tooMany = lines.findLastIndex((line) => (bytes += Buffer.byteLength(JSON.stringify(line)) + 1) > maxLinesBytes)
  if (tooMany === -1) return snapshot
  const kept = fromCall(lines.slice(Math.min(tooMany + 1, lines.length - 1)))
  const [first] = kept
  return first ? { ...snapshot, lines: kept, before: read(first).id } : snapshot
}

/** A result is shown with its call: where that is left out, so are they, unless there is nothing else. */
function fromCall(lines: SnapshotLine[]): SnapshotLine[] {
  const start = lines.findIndex((each) => {
    const line = read(each)
    return line.type !== 'message' || line.message.role !== 'tool'
  })
  return start <= 0 ? lines : lines.slice(start)
}

function read({ text, seq }: SnapshotLine): Line {
  return fromDisk(JSON.parse(text) as DiskLine, seq)
}
