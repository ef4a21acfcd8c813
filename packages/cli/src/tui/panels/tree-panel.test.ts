import { text, type Content, type SessionInfo } from '@tapetree/session'
import type { Entry, MessageEntry } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'
import { expect, test } from 'vitest'
import { golden, plainTheme, press } from './testing/panel-driver.ts'
import { TreePanel } from './tree-panel.ts'

test('branches, the path, labels, compactions, summaries and subagents are drawn', async () => {
  await expect(golden(open().panel)).toMatchFileSnapshot('golden/tree-panel.txt')
})

test('it starts at the current entry, moves elsewhere, and may leave a summary', () => {
  const { panel, calls } = open()
  press(panel, 'enter', 'home', 'enter', 's', 'enter', 's', 'keep the names', 'enter')
  expect(calls).toEqual([
    ['go', 'end', {}],
    ['go', 'ask', {}],
    ['go', 'ask', { summarize: true }],
    ['go', 'ask', { summarize: true, instructions: 'keep the names' }],
  ])
})

test('an entry is labeled and forked from, and a subagent is opened', () => {
  const { panel, calls } = open()
  press(panel, 'home', 'l', 'start', 'enter', 'f', 'down', 'down', 'enter')
  expect(calls).toEqual([
    ['label', 'ask', 'start'],
    ['fork', 'ask'],
    ['open', 'child'],
  ])
})

test('a side branch folds to its first row, and shows how much it hides', async () => {
  const { panel } = open()
  press(panel, '/', 'with a table', 'enter', 'escape', 'down', 'left', 'left')
  await expect(golden(panel)).toMatchFileSnapshot('golden/tree-panel-folded.txt')
  press(panel, 'right')
  expect(shown(panel)).toEqual(shown(open().panel))
})

test('a search and the filters show only matches, and Escape shows all again', () => {
  const { panel, calls } = open()
  press(panel, '/', 'TABLE with')
  expect(shown(panel)).toEqual(['├─○ user: with a table'])
  press(panel, 'escape', 'tab')
  expect(shown(panel)).toEqual(['● user: write a parser', '├─○ user: with a table', '● user: by hand'])
  press(panel, 'tab')
  expect(shown(panel)).toEqual(['● user: by hand'])
  press(panel, 'escape')
  expect(calls).toEqual([['close']])
})

test('the prompt of the system, the environment and the first settings are hidden until a filter shows all', () => {
  const facts: TreeNode = node({
    type: 'message',
    id: 'facts',
    message: { role: 'custom', content: [text('<environment>\nDate: today\n</environment>')] },
  })
  const model = (id: string): TreeNode =>
    node({ type: 'model_change', id, modelChange: { provider: 'p', modelId: id } })
  const system: TreeNode = node({ type: 'system', id: 'system', system: { tools: [] } })
  const end = said('end', 'agent', 'Hello.')
  const { panel } = open({ roots: [chain(model('one'), system, facts, said('ask', 'user', 'Hi'), model('two'), end)] })
  const conversation = ['● user: Hi', '● model: p/two', '◆ assistant: Hello.']
  expect(shown(panel)).toEqual(conversation)
  expect(panel.render(80)[0]).toContain('messages, 3')
  press(panel, '/', 'environment')
  expect(shown(panel)).toHaveLength(1)
  press(panel, 'escape', 'tab', 'tab', 'tab')
  expect(shown(panel)).toHaveLength(6)
  press(panel, 'tab')
  expect(shown(panel)).toEqual(conversation)
})

test('a current entry is shown, whatever it is', () => {
  const system: TreeNode = node({ type: 'system', id: 'end', system: { tools: [] } })
  expect(shown(open({ roots: [chain(said('ask', 'user', 'Hi'), system)] }).panel)).toContain(
    '◆ system prompt: with 0 tools',
  )
})

test('of 10,000 entries a frame reads only the visible ones', () => {
  let reads = 0
  const { panel } = open({ roots: longTree(10_000, () => reads++), leafId: 'e9999' })
  panel.setRows(30)
  reads = 0
  press(panel, 'pageUp', 'up', 'home', 'end')
  expect(panel.render(80).join('\n')).toContain('› ◆ assistant: entry 9999')
  expect(reads).toBeLessThan(10 * 30)
})

function open({ roots = smallTree(), leafId = 'end' }: { roots?: TreeNode[]; leafId?: string } = {}) {
  const calls: unknown[][] = []
  const subagents = [{ id: 'child', name: 'read the grammar', status: 'running' } as SessionInfo]
  const panel = new TreePanel({
    theme: plainTheme,
    tree: { roots, leafId, subagents },
    onGo: (entryId, options) => calls.push(['go', entryId, options]),
    onLabel: (entryId, label) => calls.push(['label', entryId, label]),
    onFork: (entryId) => calls.push(['fork', entryId]),
    onCompare: (entryId) => calls.push(['compare', entryId]),
    onOpenSession: (sessionId) => calls.push(['open', sessionId]),
    onClose: () => calls.push(['close']),
  })
  return { panel, calls }
}

/** The rows without the frame, the symbol, and the text at the right end. */
function shown(panel: TreePanel): string[] {
  const lines = panel.render(80).filter((line) => /[●○◆⤷] /.test(line))
  return lines.map(
    (line) =>
      line
        .slice(4)
        .split(/ {2,}|│$/)[0]
        ?.trim() ?? '',
  )
}

function smallTree(): TreeNode[] {
  const end = said('end', 'agent', 'Done, it reads everything.')
  const compaction: TreeNode = node({
    type: 'compaction',
    id: 'compact',
    compaction: { summary: 'We chose by hand.', firstKeptEntryId: 'hand', tokensBefore: 9 },
  })
  const left: TreeNode = node({
    type: 'branch_summary',
    id: 'left',
    branchSummary: { summary: 'A table was tried.', fromId: 'table' },
  })
  const note: TreeNode = node({ type: 'label', id: 'note', label: { targetId: 'hand', label: 'better' } })
  const hand = { ...said('hand', 'user', 'by hand'), label: 'better' }
  const table = chain(said('table', 'user', 'with a table'), said('table2', 'agent', 'A table it is.'))
  const task: Content = {
    type: 'tool_use',
    toolUse: { id: 'call', name: 'task', input: { description: 'read the grammar' } },
  }
  const plan = said('plan', 'agent', 'How? \u001b[31mBy hand\u001b]0;x\u0007 or by table?', [task])
  const trunk = chain(said('ask', 'user', 'write a parser'), plan)
  adopt(plan, [table, chain(left, hand, compaction, end)])
  adopt(hand, [note])
  return [trunk]
}

/** A branch at every tenth entry. */
function longTree(count: number, onRead: () => void): TreeNode[] {
  const nodes = Array.from({ length: count }, (_, index) =>
    said(`e${index}`, index % 2 ? 'agent' : 'user', `entry ${index}`),
  )
  for (const [index, each] of nodes.entries()) {
    const { message } = each.entry as MessageEntry
    Object.defineProperty(each.entry, 'message', { get: () => (onRead(), message) })
    if (index % 10 === 5) adopt(each, [said(`side${index}`, 'user', 'aside')])
    adopt(each, nodes.slice(index + 1, index + 2))
  }
  return nodes.slice(0, 1)
}

function said(id: string, who: 'user' | 'agent', words: string, more: Content[] = []): TreeNode {
  const role = who === 'agent' ? 'assistant' : who
  return node({ type: 'message', id, message: { role, content: [text(words), ...more] } })
}

function node(entry: Pick<Entry, 'id' | 'type'> & Record<string, unknown>): TreeNode {
  return { entry: { parentId: null, timestamp: '', seq: 0, ...entry } as unknown as Entry, children: [] }
}

function chain(first: TreeNode, ...rest: TreeNode[]): TreeNode {
  let last = first
  for (const next of rest) {
    adopt(last, [next])
    last = next
  }
  return first
}

function adopt(parent: TreeNode, children: TreeNode[]): void {
  for (const child of children) {
    child.entry.parentId = parent.entry.id
    parent.children.push(child)
  }
}
