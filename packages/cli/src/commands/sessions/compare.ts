import { compareSession } from '@tapetree/agent/workspace'
import { SessionError } from '@tapetree/session'
import type { ComparedFiles, ComparedSide, Comparison, EntrySummary } from '@tapetree/session/screen'
import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { printJson, stylesFor, write, type Io, type Styles } from '../../command-line/io.ts'
import { findSession } from '../../host/find-session.ts'
import { placesOf } from '../../host/places.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { paged } from '../../sessions/paged.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { costText, counted, elapsedText } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import { snakeNames } from '../../text/json-text.ts'
import { outputTable } from '../../text/output-table.ts'

/** Compares two entries of a session and the files at each. */
export async function runSessionsCompare(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last', leftReference = '', rightReference] = invocation.positionals
  using progress = new Progress(io.stderr, 'Comparing')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    await using session = await store.open(id, { readOnly: true })
    const left = await findEntry(session, leftReference)
    const right = rightReference === undefined ? session.leafId : await findEntry(session, rightReference)
    if (right === null) throw new SessionError('entry-not-found', `Session ${id} has no entries yet.`)
    const folder = session.header?.cwd
    const diff = flag(invocation, 'diff')
    const files = folder !== undefined && {
      files: { folder, storesFolder: placesOf(io).workspaces, ...(diff && { diff: {} }) },
    }
    const comparison = await compareSession(session, { left, right, ...files })
    progress.close()
    if (flag(invocation, 'json')) {
      await printJson(io, { session_id: id, ...(snakeNames(comparison) as Record<string, unknown>) })
      return exitCodes.ok
    }
    await paged(io, async (output) => {
      const styles = stylesFor(output, io.env)
      await write(output, comparisonText(comparison, { styles, width: output.columns ?? defaultWidth }))
      for (const { patch = '', isCut } of comparison.files?.changes ?? []) {
        await write(output, diff ? `\n${harmless(patch)}${isCut ? '… the rest is too long\n' : ''}` : '')
      }
    })
    return exitCodes.ok
  })
}

const defaultWidth = 120
const listed = 20

function comparisonText(comparison: Comparison, { styles, width }: { styles: Styles; width: number }): string {
  const { commonAncestor, left, right, files } = comparison
  const columns = [{ title: '' }, { title: 'left', flexible: true }, { title: 'right' }]
  const row = (name: string, of: (side: ComparedSide) => string): string[] => [name, of(left), of(right)]
  const table = outputTable(
    columns,
    [
      row('entry', ({ leafId }) => leafId),
      row('messages', ({ messageCount }) => String(messageCount)),
      row('cost', ({ usage }) => costText(usage.cost)),
      row('tokens', ({ usage }) => usage.totalTokens.toLocaleString('en')),
      row('time', ({ runMs }) => elapsedText(runMs)),
      row('checks', checksText),
    ],
    width,
  )
  return [
    commonAncestor === null ? 'They have nothing in common.' : `They part after entry ${commonAncestor}.`,
    '',
    table.trimEnd(),
    ...sideText('left', left, { styles, width }),
    ...sideText('right', right, { styles, width }),
    '',
    ...(files ? filesText(files, styles) : []),
    '',
  ].join('\n')
}

function checksText({ checks }: ComparedSide): string {
  if (checks.length === 0) return '-'
  const failed = checks.filter(({ exitCode }) => exitCode !== 0)
  const [first] = failed
  return first
    ? `${failed.length} of ${checks.length} failed: ${harmlessLine(first.command)} (exit code ${first.exitCode})`
    : `${checks.length} passed`
}

function sideText(name: string, { entries }: ComparedSide, at: { styles: Styles; width: number }): string[] {
  const shown = entries.filter(({ type }) => type === 'message')
  if (shown.length === 0) return []
  const more = shown.length - listed
  return [
    '',
    at.styles.bold(`── ${name}`),
    ...(more > 0 ? [`… ${counted(more, 'earlier message')}`] : []),
    ...shown.slice(-listed).map((entry) => fitText(entryText(entry), at.width)),
  ]
}

function entryText({ seq, role = '', preview, label }: EntrySummary): string {
  return harmlessLine(`${seq} ${role}: ${preview}${label === undefined ? '' : ` [${label}]`}`)
}

function filesText(
  { problem, changes, changedCount, addedLines, removedLines }: ComparedFiles,
  { bold }: Styles,
): string[] {
  if (problem !== undefined) return [`The files were not compared. ${harmlessLine(problem)}`]
  if (changedCount === 0) return ['The files are the same.']
  const letters = { added: 'A', changed: 'M', removed: 'D' } as const
  return [
    bold(`── ${counted(changedCount, 'file')} from left to right, +${addedLines} -${removedLines}`),
    ...changes.map(({ path, change, addedLines: added, removedLines: removed, isBinary }) => {
      const lines = isBinary ? 'binary' : `+${added} -${removed}`
      return `${letters[change]} ${lines.padStart(12)}  ${harmlessLine(path)}`
    }),
    ...(changedCount > changes.length ? [`… ${counted(changedCount - changes.length, 'more file')}`] : []),
  ]
}
