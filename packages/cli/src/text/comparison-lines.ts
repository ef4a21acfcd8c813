import type { ComparedFiles, ComparedSide, Comparison, EntrySummary } from '@tapetree/session/screen'
import { costText, counted, elapsedText } from './amounts.ts'
import { fitText } from './display-width.ts'
import { harmlessLine } from './harmless.ts'
import { outputTable } from './output-table.ts'

const listed = 20

interface Look {
  width: number
  heading: (text: string) => string
}

/** A comparison as lines for a terminal, without the diffs. Harmless. */
export function comparisonLines(comparison: Comparison, look: Look): string[] {
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
    look.width,
  )
  const lines = [
    commonAncestor === null ? 'They have nothing in common.' : `They part after entry ${commonAncestor}.`,
    '',
    ...table.trimEnd().split('\n'),
    ...sideLines('left', left),
    ...sideLines('right', right),
    '',
    ...(files ? fileLines(files) : []),
  ]
  const fitted = lines.map((line) => fitText(line, look.width))
  return fitted.map((line) => (line.startsWith('── ') ? look.heading(line) : line))
}

/** The results of the checks in a few words. */
export function checksText({ checks }: ComparedSide): string {
  if (checks.length === 0) return '-'
  const failed = checks.filter(({ exitCode }) => exitCode !== 0)
  const [first] = failed
  return first
    ? `${failed.length} of ${checks.length} failed: ${harmlessLine(first.command)} (exit code ${first.exitCode})`
    : `${checks.length} passed`
}

function sideLines(name: string, { entries }: ComparedSide): string[] {
  const shown = entries.filter(({ type }) => type === 'message')
  if (shown.length === 0) return []
  const more = shown.length - listed
  return [
    '',
    `── ${name}`,
    ...(more > 0 ? [`… ${counted(more, 'earlier message')}`] : []),
    ...shown.slice(-listed).map((entry) => entryText(entry)),
  ]
}

function entryText({ seq, role = '', preview, label }: EntrySummary): string {
  return harmlessLine(`${seq} ${role}: ${preview}${label === undefined ? '' : ` [${label}]`}`)
}

function fileLines({ problem, changes, changedCount, addedLines, removedLines }: ComparedFiles): string[] {
  if (problem !== undefined) return [`The files were not compared. ${harmlessLine(problem)}`]
  if (changedCount === 0) return ['The files are the same.']
  const letters = { added: 'A', changed: 'M', removed: 'D' } as const
  return [
    `── ${counted(changedCount, 'file')} from left to right, +${addedLines} -${removedLines}`,
    ...changes.map(({ path, change, addedLines: added, removedLines: removed, isBinary }) => {
      const lines = isBinary ? 'binary' : `+${added} -${removed}`
      return `${letters[change]} ${lines.padStart(12)}  ${harmlessLine(path)}`
    }),
    ...(changedCount > changes.length ? [`… ${counted(changedCount - changes.length, 'more file')}`] : []),
  ]
}
