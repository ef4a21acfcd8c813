import { parseDiff, type DiffFile } from '@tapetree/session/screen'

interface Versions {
  /** The name to show. */
  name: string
  /** Undefined if the file does not exist. */
  before: string | undefined
  after: string
}

const contextLines = 3
/** Bounds the time and the memory of a comparison. Larger changes are shown as one block. */
const maxCells = 4_000_000

/** The change of a file, with line numbers and changed words. The texts are harmless. Cuts nothing. */
export function diffTexts({ name, before, after }: Versions): DiffFile {
  const [old, now] = [linesOf(before ?? ''), linesOf(after)]
  const text = hunksOf(stepsBetween(old, now)).map(hunkText).join('\n')
  const [file] = parseDiff(text)
  return { oldName: before === undefined ? null : name, newName: name, hunks: file?.hunks ?? [], notes: [] }
}

/** Stands after a last line without a line break, so that it differs from the same line with one. */
const unterminated = '\u0000'

function linesOf(text: string): string[] {
  if (text === '') return []
  return (text.endsWith('\n') ? text.slice(0, -1) : text + unterminated).split('\n')
}

interface Step {
  sign: ' ' | '-' | '+'
  text: string
  /** Counted from 1, on the side where the line exists. */
  old: number
  now: number
}

function stepsBetween(old: readonly string[], now: readonly string[]): Step[] {
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  const most = Math.min(old.length, now.length) - start
  while (end < most && old.at(-1 - end) === now.at(-1 - end)) end++
  const middle = changesIn(old.slice(start, old.length - end), now.slice(start, now.length - end))
  const same = (text: string): [' ', string] => [' ', text]
  const signed = [...old.slice(0, start).map(same), ...middle, ...old.slice(old.length - end).map(same)]
  let [oldLine, newLine] = [0, 0]
  return signed.map(([sign, text]) => {
    if (sign !== '+') oldLine++
    if (sign !== '-') newLine++
    return { sign, text, old: oldLine, now: newLine }
  })
}

/** By a longest common subsequence of lines. */
function changesIn(old: readonly string[], now: readonly string[]): [Step['sign'], string][] {
  const width = now.length + 1
  const removed = old.map((text): ['-', string] => ['-', text])
  const added = now.map((text): ['+', string] => ['+', text])
  if ((old.length + 1) * width > maxCells || Math.min(old.length, now.length) > 65_535) return [...removed, ...added]
  const lengths = new Uint16Array((old.length + 1) * width)
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = now.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        old[row] === now[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const signed: [Step['sign'], string][] = []
  let [row, column] = [0, 0]
  while (row < old.length || column < now.length) {
    const [left, right] = [old[row], now[column]]
    if (left !== undefined && left === right) {
      signed.push([' ', left])
      row++
      column++
    } else if (left !== undefined && (right === undefined || at(row + 1, column) >= at(row, column + 1))) {
      signed.push(['-', left])
      row++
    } else {
      signed.push(['+', right ?? ''])
      column++
    }
  }
  return signed
}

/** Changes with a few unchanged lines around them. */
function hunksOf(steps: readonly Step[]): Step[][] {
  const hunks: Step[][] = []
  let from = 0
  let to = 0
  for (const [index, { sign }] of steps.entries()) {
    if (sign === ' ') continue
    if (to > 0 && index - contextLines > to) {
      hunks.push(steps.slice(from, to))
      to = 0
    }
    if (to === 0) from = Math.max(0, index - contextLines)
    to = Math.min(steps.length, index + contextLines + 1)
  }
  return to > 0 ? [...hunks, steps.slice(from, to)] : hunks
}

function hunkText(steps: readonly Step[]): string {
  const [first] = steps
  if (!first) return ''
  const count = (without: Step['sign']): number => steps.filter(({ sign }) => sign !== without).length
  const start = { old: first.old + (first.sign === '+' ? 1 : 0), now: first.now + (first.sign === '-' ? 1 : 0) }
  const lines = steps.flatMap(({ sign, text }) =>
    text.endsWith(unterminated) ? [sign + text.slice(0, -1), '\\ No newline at end of file'] : [sign + text],
  )
  return [`@@ -${start.old},${count('+')} +${start.now},${count('-')} @@`, ...lines].join('\n')
}
