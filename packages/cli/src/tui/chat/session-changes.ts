import type { SessionHandle } from '@tapetree/client'
import { changedFiles, type DiffFile } from '@tapetree/session/screen'
import type { Transcript, TreeNode } from '@tapetree/session/view'
import type { SessionSource } from '../../session-source.ts'
import { contentText } from '../../text/content-text.ts'
import { comparedFiles } from '../panels/compare-panel.ts'
import { shownDiff, shownText, shownWords } from '../markdown/shown-text.ts'

interface ChangesOptions {
  handle: SessionHandle
  source: Pick<SessionSource, 'tree' | 'compare'>
}

export interface SessionChanges {
  /** Harmless. */
  files: DiffFile[]
  /** Why it is incomplete. */
  notes: string[]
}

/** What the session changed on its current branch. */
export async function sessionChanges(options: ChangesOptions): Promise<SessionChanges> {
  return (await fromSnapshots(options)) ?? fromCalls(options.handle.transcript)
}

/** From the recorded files, so it includes what commands changed. Undefined if they are not recorded. */
async function fromSnapshots({ handle, source }: ChangesOptions): Promise<SessionChanges | undefined> {
  const right = handle.transcript.path.leafId
  if (right === null) return { files: [], notes: [] }
  const left = firstEntry(await source.tree(handle.sessionId), right)
  if (left === undefined) return undefined
  const { files } = await source.compare(handle.sessionId, { left, right })
  if (!files || files.problem !== undefined) return undefined
  const more = files.changedCount - files.changes.length
  return {
    files: comparedFiles(files.changes),
    notes: more > 0 ? [`Only the first ${files.changes.length} of ${files.changedCount} changed files are shown.`] : [],
  }
}

/** The first message of the user on the way to this entry. */
function firstEntry(roots: readonly TreeNode[], leafId: string): string | undefined {
  const parents = new Map<string, TreeNode>()
  const nodes = new Map<string, TreeNode>()
  const open = [...roots]
  for (let node = open.pop(); node; node = open.pop()) {
    nodes.set(node.entry.id, node)
    for (const child of node.children) {
      parents.set(child.entry.id, node)
      open.push(child)
    }
  }
  let first: string | undefined
  for (let node = nodes.get(leafId); node; node = parents.get(node.entry.id)) {
    if (node.entry.type === 'message' && node.entry.message.role === 'user') first = node.entry.id
  }
  return first
}

/** Without recorded files: the edits that the conversation shows, in their order. */
function fromCalls({ path }: Transcript): SessionChanges {
  const files: DiffFile[] = []
  for (const item of path.items) {
    if (item.type !== 'assistant') continue
    for (const part of item.parts) {
      if (part.type !== 'tool_call' || (part.name !== 'edit' && part.name !== 'write')) continue
      if (!part.result || part.result.isError) continue
      const input = Object.fromEntries(
        Object.entries(part.input).map(([name, value]) => [name, typeof value === 'string' ? shownText(value) : value]),
      )
      const name = shownWords(typeof part.input['path'] === 'string' ? part.input['path'] : part.name)
      const changed = changedFiles(input, shownDiff(contentText(part.result.content)))
      files.push(...changed.map((file) => ({ ...file, newName: name })))
    }
  }
  const isIncomplete = files.length > 0
  return {
    files,
    notes: isIncomplete
      ? ['Files are not recorded here: these are the edits of the agent, without those of commands.']
      : [],
  }
}
