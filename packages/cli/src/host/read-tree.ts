import type { RestClient } from '@tapetree/client'
import { fromDisk, type DiskLine, type Entry, type TreeNode } from '@tapetree/session'

const pageLines = 500

/** The whole tree of a session on a server, from its lines. */
export async function readTree(rest: RestClient, sessionId: string): Promise<TreeNode[]> {
  const views = new Map<string, TreeNode>()
  const roots: TreeNode[] = []
  const labels = new Map<string, string>()
  for await (const entry of entriesOf(rest, sessionId)) {
    if (entry.type === 'label') labels.set(entry.label.targetId, entry.label.label ?? '')
    const node: TreeNode = { entry, children: [] }
    views.set(entry.id, node)
    const parent = entry.parentId === null ? undefined : views.get(entry.parentId)
    if (parent) parent.children.push(node)
    else roots.push(node)
  }
  for (const [target, label] of labels) {
    const node = views.get(target)
    if (node && label !== '') node.label = label
  }
  return roots
}

async function* entriesOf(rest: RestClient, sessionId: string): AsyncGenerator<Entry> {
  let after = 0
  for (;;) {
    const { events, head } = await rest.events(sessionId, { after, limit: pageLines })
    for (const event of events) {
      if (typeof event['id'] !== 'string') continue
      const line = fromDisk(event as unknown as DiskLine, event.seq)
      if ('parentId' in line) yield line
    }
    const last = events.at(-1)
    if (!last || last.seq >= head.seq) return
    after = last.seq
  }
}
