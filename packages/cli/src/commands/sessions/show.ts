import type { Session, TreeNode } from '@tapetree/session'
import { ageOf } from '../../text/amounts.ts'
import { flag, type Invocation } from '../../command-line/command.ts'
import { costText } from '../../text/cost-text.ts'
import { counted } from '../../text/counted.ts'
import { elapsedText } from '../../text/elapsed.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { write, type Io } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { paged } from '../../sessions/paged.ts'
import { Progress } from '../../sessions/progress.ts'
import { segmentsOf } from '../../sessions/segments.ts'
import { subagentsOf, subagentTotals, type SubagentTotals } from '../../sessions/subagents.ts'
import { treeJson } from '../../sessions/tree-json.ts'
import { treeLines } from '../../sessions/tree-lines.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/snake-names.ts'

const defaultWidth = 120

export async function runSessionsShow(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  using progress = new Progress(io.stderr, 'Reading the session')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    await using session = await store.open(id, { readOnly: true })
    const tree = await session.getTree()
    const subagents = await subagentsOf(session)
    const spent = await subagentTotals(store, subagents)
    progress.close()
    if (flag(invocation, 'json')) {
      await printJson(io, {
        ...shown(session, tree),
        ...(spent.count > 0 && { subagents: spent }),
        ...(flag(invocation, 'tree') && { tree: treeJson(tree, subagents) }),
      })
      return exitCodes.ok
    }
    await paged(io, async (output) => {
      await write(output, description(session, { tree, spent }))
      if (!flag(invocation, 'tree')) return
      await write(output, '\n')
      const { leafId } = session
      const width = output.columns ?? defaultWidth
      for (const line of treeLines(tree, { leafId, subagents, width })) await write(output, `${line}\n`)
    })
    return exitCodes.ok
  })
}

function shown(session: Session, tree: readonly TreeNode[]): Record<string, unknown> {
  const [path, ...branches] = segmentsOf(tree, session.leafId)
  return snakeNames({
    ...session.info,
    leafId: session.leafId,
    head: session.head,
    totals: session.totals,
    pathLength: path?.nodes.length ?? 0,
    branches: branches.map(({ from, nodes }) => ({ from: from?.entry.id ?? null, entries: nodes.length })),
    labels: Object.fromEntries(session.getLabels()),
    openRun: session.openRun,
    damage: session.damage,
  }) as Record<string, unknown>
}

function description(session: Session, { tree, spent }: { tree: readonly TreeNode[]; spent: SubagentTotals }): string {
  const { id, name, cwd, parentSession, created, modified, status, messageCount, queueLength } = session.info
  const { turns, toolCalls, runMs, tokens, cost } = session.totals
  const [path, ...branches] = segmentsOf(tree, session.leafId)
  const now = Date.now()
  const rows: [string, string][] = [
    ['session', id],
    ['name', name],
    ['folder', cwd ?? ''],
    ['made from', parentSession ?? ''],
    ['created', created],
    ['last message', `${modified} (${ageOf(modified, now)})`],
    ['status', queueLength > 0 ? `${status}, ${queueLength} waiting` : status],
    ['messages', `${messageCount}, of them ${counted(turns, 'answer')} with ${counted(toolCalls, 'tool call')}`],
    ['run time', elapsedText(runMs)],
    ['tokens', spentText({ tokens, cost }, spent)],
    ['path', counted(path?.nodes.length ?? 0, 'entry', 'entries')],
    ['branches', branches.length === 0 ? 'none' : branchText(branches)],
    ['labels', [...session.getLabels().values()].join(', ')],
    ['lies in', session.path ?? ''],
  ]
  const lines = rows
    .filter(([, value]) => value !== '')
    .map(([key, value]) => `${key.padEnd(13)} ${harmlessLine(value)}\n`)
  return lines.join('') + damageText(session)
}

/** With what subagents used, and how much of it that is. */
function spentText(own: { tokens: number; cost: number }, { count, tokens, cost }: SubagentTotals): string {
  const all = `${own.tokens + tokens}, ${costText(own.cost + cost)}`
  return count === 0 ? all : `${all}; of these ${tokens}, ${costText(cost)} by ${counted(count, 'subagent')}`
}

function branchText(branches: readonly { from: TreeNode | null; nodes: readonly TreeNode[] }[]): string {
  const places = branches.map(({ from, nodes }) => `at ${from?.entry.seq ?? 'the root'} (${nodes.length})`)
  const more = places.length > 10 ? ` and ${places.length - 10} more` : ''
  return `${branches.length}: ${places.slice(0, 10).join(', ')}${more}`
}

function damageText({ damage, id }: Session): string {
  if (damage.length === 0) return ''
  const isNew = damage.some((each) => each.isNew)
  const next = isNew ? `tapetree log verify ${id}` : `seen; tapetree log verify ${id}`
  return `damage        ${counted(damage.length, 'place')} (${next})\n`
}
