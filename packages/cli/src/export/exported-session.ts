import { compareSession } from '@tapetree/agent/workspace'
import type { Session } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import type { Comparison } from '@tapetree/session/screen'
import type { TreeNode } from '@tapetree/session/view'
import { fitText } from '../text/display-width.ts'
import { sessionTitle } from '../text/describe-entry.ts'
import { segmentsOf, type Segment } from '../sessions/segments.ts'
import type { RedactionTally } from './redaction-tally.ts'

/** The content of an export for people, already redacted. */
export interface ExportedSession {
  id: string
  title: string
  created: string
  cwd: string | undefined
  cost: number
  tokens: number
  /** The first is the current path of the session. */
  segments: readonly Segment[]
  /** The number of all branches, including those left out. */
  branches: number
  /** The first branches compared with the current path, by number: the branch is the left side. */
  comparisons: ReadonlyMap<number, Comparison>
  /** Tool names by call. */
  callNames: ReadonlyMap<string, string>
  /** The bytes of an image in the log; undefined if they are missing. */
  imageBytes(sha256: string): Promise<Uint8Array | undefined>
}

export interface ExportScope {
  tally: RedactionTally
  /** Everything, or only the current path. */
  scope: 'tree' | 'path'
  /** The folder with the recorded files of all workspaces. Absent: branches are compared without their files. */
  snapshotsFolder?: string
}

const maxTitle = 200

export async function exportedSession(session: Session, given: ExportScope): Promise<ExportedSession> {
  const { tally, scope, snapshotsFolder } = given
  const all = segmentsOf(await session.getTree(), session.leafId)
  const chosen = scope === 'tree' ? all : all.slice(0, 1)
  const segments = chosen.map((segment) => ({ ...segment, nodes: [...segment.nodes] }))
  const redacted = new Map<TreeNode, TreeNode>()
  for (const { nodes } of segments) {
    for (const [index, node] of nodes.entries()) {
      const { entry, label } = tally.json({ entry: node.entry, ...(node.label !== undefined && { label: node.label }) })
      const made: TreeNode = { ...node, entry, ...(label !== undefined && { label }) }
      redacted.set(node, made)
      nodes[index] = made
    }
  }
  const info = tally.redactor.json(session.info)
  const { cost, tokens } = session.totals
  return {
    id: session.id,
    title: fitText(sessionTitle(info), maxTitle) || session.id,
    created: info.created,
    cwd: info.cwd,
    cost,
    tokens,
    branches: all.length - 1,
    comparisons: new Map(
      [...(await comparisonsOf(session, segments, snapshotsFolder))].map(([number, { files, ...comparison }]) => [
        number,
        // The entries are counted where they are shown; the files are in no other place.
        { ...tally.redactor.json(comparison), ...(files && { files: tally.json(files) }) },
      ]),
    ),
    segments: segments.map((segment) => ({ ...segment, from: segment.from && (redacted.get(segment.from) ?? null) })),
    callNames: new Map(segments.flatMap(({ nodes }) => nodes.flatMap(({ entry }) => callsIn(entry)))),
    imageBytes: (sha256) => session.getBlob(sha256).catch(() => undefined), // the page says that it is missing
  }
}

/** Each comparison looks at the whole log. */
const maxCompared = 20

async function comparisonsOf(
  session: Session,
  segments: readonly Segment[],
  storesFolder: string | undefined,
): Promise<Map<number, Comparison>> {
  const { leafId: right, header } = session
  const comparisons = new Map<number, Comparison>()
  if (right === null) return comparisons
  const folder = header?.cwd
  const files = folder !== undefined && storesFolder !== undefined && { files: { folder, storesFolder, diff: {} } }
  for (const { number, nodes } of segments.slice(1, 1 + maxCompared)) {
    const left = nodes.at(-1)?.entry.id
    if (left !== undefined) comparisons.set(number, await compareSession(session, { left, right, ...files }))
  }
  return comparisons
}

function callsIn(entry: Entry): [string, string][] {
  if (entry.type !== 'message') return []
  return entry.message.content.flatMap((block) =>
    block.type === 'tool_use' ? [[block.toolUse.id, block.toolUse.name] as [string, string]] : [],
  )
}
