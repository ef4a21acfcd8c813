/** One file of a unified diff. A name is null if the diff has none, or if the file does not exist on that side. */
export interface DiffFile {
  readonly oldName: string | null
  readonly newName: string | null
  readonly hunks: readonly DiffHunk[]
  /** Lines outside of hunks, such as `rename from` or `Binary files differ`. */
  readonly notes: readonly string[]
}

export interface DiffHunk {
  /** The text behind the second `@@`; usually the enclosing function. */
  readonly section: string
  readonly lines: readonly DiffLine[]
}

export interface DiffLine {
  readonly type: 'context' | 'added' | 'removed'
  /** Without the sign. */
  readonly text: string
  /** Counted from 1. Absent on the side where the line does not exist, or if the diff has no line numbers. */
  readonly oldLine?: number
  readonly newLine?: number
  /** The file does not end with a line break after this line. */
  readonly isUnterminated?: true
  /** What changed between this line and its counterpart. Absent if it has none, or if they differ too much. */
  readonly marks?: readonly TextRange[]
}

/** In UTF-16 code units; `end` is exclusive. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/**
 * Parses a unified diff, with or without the headers of Git. Never throws: a line that does not fit becomes a note of
 * its file. The lines of a diff that was cut off are kept.
 */
export function parseDiff(text: string): DiffFile[] {
  const files: MutableFile[] = []
  const current = (): MutableFile => files.at(-1) ?? addFile(files)
  const lines = text.replace(/\n$/, '').split('\n')
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const next = lines[index + 1]
    const hunk = hunkHeader.exec(line)
    if (hunk) {
      index = readHunk(lines, index + 1, { header: hunk, file: current() }) - 1
    } else if (line.startsWith('--- ') && next?.startsWith('+++ ')) {
      const last = files.at(-1)
      // After `diff --git`, the names belong to the file that it started.
      const file = last && last.hunks.length === 0 && last.isFromGit ? last : addFile(files)
      file.oldName = nameIn(line)
      file.newName = nameIn(next)
      index++
    } else if (line.startsWith('diff --git ')) {
      const file = addFile(files)
      file.isFromGit = true
      const [, old, now] = gitNames.exec(line) ?? []
      if (old !== undefined && now !== undefined) Object.assign(file, { oldName: old, newName: now })
    } else if (line !== '' && !gitIndex.test(line)) {
      current().notes.push(line)
    }
  }
  return files.map(({ oldName, newName, hunks, notes }) => ({
    oldName,
    newName,
    hunks: hunks.map(({ section, lines: all }) => ({ section, lines: withMarks(all) })),
    notes,
  }))
}

/** A change that has not been made yet, so its place in the file is unknown. */
export function replacementHunk(oldText: string, newText: string): DiffHunk {
  const lines: DiffLine[] = [
    ...linesOf(oldText).map((text) => ({ type: 'removed' as const, text })),
    ...linesOf(newText).map((text) => ({ type: 'added' as const, text })),
  ]
  return { section: '', lines: withMarks(lines) }
}

/**
 * What a call of `edit` or `write` changes. The tool prints a sentence and then the diff; before that, and for a new
 * file, it is the requested change.
 */
export function changedFiles(input: Readonly<Record<string, unknown>>, printed: string): DiffFile[] {
  const at = printed.indexOf('\n\n')
  if (at >= 0) return parseDiff(printed.slice(at + 2))
  const { path, oldText, newText, content } = input
  const name = typeof path === 'string' ? path : null
  const hunk = replacementHunk(stringOr(oldText), stringOr(newText ?? content))
  return [{ oldName: name, newName: name, hunks: [hunk], notes: [] }]
}

/** One line of a diff with the old file beside the new one. */
export interface DiffPair {
  readonly left?: DiffLine
  readonly right?: DiffLine
}

/** The lines of a hunk side by side: each removed line beside the added line that takes its place. */
export function sideBySide(lines: readonly DiffLine[]): DiffPair[] {
  const pairs: DiffPair[] = []
  let index = 0
  while (index < lines.length) {
    const removed = countOf(lines, index, 'removed')
    const added = countOf(lines, index + removed, 'added')
    for (let row = 0; row < Math.max(removed, added); row++) {
      const left = row < removed ? lines[index + row] : undefined
      const right = row < added ? lines[index + removed + row] : undefined
      pairs.push({ ...(left && { left }), ...(right && { right }) })
    }
    const line = lines[index]
    if (removed + added === 0 && line) pairs.push({ left: line, right: line })
    index += Math.max(1, removed + added)
  }
  return pairs
}

/** The ranges of both lines that differ. Undefined if the lines are too different, or too long to compare. */
export function wordMarks(before: string, after: string): { removed: TextRange[]; added: TextRange[] } | undefined {
  if (before.length > maxMarkedLength || after.length > maxMarkedLength) return undefined
  const left = before.match(words) ?? []
  const right = after.match(words) ?? []
  const start = commonStart(left, right)
  const end = commonEnd(left, right, start)
  const middle = { left: left.slice(start, left.length - end), right: right.slice(start, right.length - end) }
  if (middle.left.length * middle.right.length > maxComparisons) return undefined
  const kept = commonWords(middle.left, middle.right)
  const isKept = (word: string, index: number, all: readonly string[], side: Set<number>): boolean =>
    index < start || index >= all.length - end || side.has(index - start)
  const same = left.filter((word, index) => isKept(word, index, left, kept.left)).join('')
  if (same.trim().length * 3 < Math.max(before.trim().length, after.trim().length)) return undefined
  return {
    removed: rangesOf(left, (word, index) => !isKept(word, index, left, kept.left)),
    added: rangesOf(right, (word, index) => !isKept(word, index, right, kept.right)),
  }
}

/** Longer lines get no marks. */
const maxMarkedLength = 2000
/** Bounds the time: the comparison takes this many steps at most. */
const maxComparisons = 40_000
const words = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu

interface MutableFile {
  oldName: string | null
  newName: string | null
  hunks: { section: string; lines: DiffLine[] }[]
  notes: string[]
  isFromGit?: boolean
}

const hunkHeader = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)$/
const gitNames = /^diff --git a\/(.+) b\/(.+)$/
/** The hashes of a file before and after mean nothing to people. */
const gitIndex = /^index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: \d+)?$/

function addFile(files: MutableFile[]): MutableFile {
  const file: MutableFile = { oldName: null, newName: null, hunks: [], notes: [] }
  files.push(file)
  return file
}

/** `--- a/src/x.ts<tab>timestamp`. The prefixes are those of Git. */
function nameIn(line: string): string | null {
  const [name = ''] = line.slice('--- '.length).split('\t')
  return name === '/dev/null' ? null : name.replace(/^[ab]\//, '')
}

/** Reads as many lines as the header promises, so a removed line may begin with `--`. Returns the index of the first line after it. */
function readHunk(
  lines: readonly string[],
  from: number,
  { header, file }: { header: RegExpExecArray; file: MutableFile },
): number {
  const [, oldStart, oldCount = '1', newStart, newCount = '1', section = ''] = header
  let oldLine = Number(oldStart)
  let newLine = Number(newStart)
  const oldEnd = oldLine + Number(oldCount)
  const newEnd = newLine + Number(newCount)
  const found: DiffLine[] = []
  let index = from
  for (; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const last = found.at(-1)
    if (line.startsWith('\\') && last) {
      found[found.length - 1] = { ...last, isUnterminated: true }
      continue
    }
    if (oldLine >= oldEnd && newLine >= newEnd) break
    const text = line.slice(1)
    if (line.startsWith('-') && oldLine < oldEnd) found.push({ type: 'removed', text, oldLine: oldLine++ })
    else if (line.startsWith('+') && newLine < newEnd) found.push({ type: 'added', text, newLine: newLine++ })
    // Some programs remove trailing spaces, and with them the sign of an empty line.
    else if ((line === '' || line.startsWith(' ')) && oldLine < oldEnd && newLine < newEnd)
      found.push({ type: 'context', text, oldLine: oldLine++, newLine: newLine++ })
    else break
  }
  file.hunks.push({ section, lines: found })
  return index
}

/** The input of a call comes from a model and may have any form. */
function stringOr(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

/** Pairs each block of removed lines with the added lines that follow it, line by line. */
function withMarks(lines: readonly DiffLine[]): DiffLine[] {
  const marked = [...lines]
  let index = 0
  while (index < lines.length) {
    const removed = countOf(lines, index, 'removed')
    const added = countOf(lines, index + removed, 'added')
    for (let pair = 0; pair < Math.min(removed, added, maxMarkedPairs); pair++) {
      const [left, right] = [lines[index + pair], lines[index + removed + pair]]
      const marks = left && right && wordMarks(left.text, right.text)
      if (!marks) continue
      marked[index + pair] = { ...left, marks: marks.removed }
      marked[index + removed + pair] = { ...right, marks: marks.added }
    }
    index += Math.max(1, removed + added)
  }
  return marked
}

/** In one block. */
const maxMarkedPairs = 200

function countOf(lines: readonly DiffLine[], from: number, type: DiffLine['type']): number {
  let count = 0
  while (lines[from + count]?.type === type) count++
  return count
}

function commonStart(left: readonly string[], right: readonly string[]): number {
  let count = 0
  while (count < left.length && count < right.length && left[count] === right[count]) count++
  return count
}

function commonEnd(left: readonly string[], right: readonly string[], start: number): number {
  const most = Math.min(left.length, right.length) - start
  let count = 0
  while (count < most && left.at(-1 - count) === right.at(-1 - count)) count++
  return count
}

/** The indices of a longest common subsequence, on both sides. */
function commonWords(left: readonly string[], right: readonly string[]): { left: Set<number>; right: Set<number> } {
  const width = right.length + 1
  const lengths = new Uint16Array((left.length + 1) * width)
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0
  for (let row = left.length - 1; row >= 0; row--) {
    for (let column = right.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        left[row] === right[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const kept = { left: new Set<number>(), right: new Set<number>() }
  let [row, column] = [0, 0]
  while (row < left.length && column < right.length) {
    if (left[row] === right[column]) {
      kept.left.add(row++)
      kept.right.add(column++)
    } else if (at(row + 1, column) >= at(row, column + 1)) row++
    else column++
  }
  return kept
}

/** Neighboring ranges become one. */
function rangesOf(parts: readonly string[], isChanged: (part: string, index: number) => boolean): TextRange[] {
  const ranges: { start: number; end: number }[] = []
  let offset = 0
  for (const [index, part] of parts.entries()) {
    const last = ranges.at(-1)
    if (isChanged(part, index)) {
      if (last?.end === offset) last.end += part.length
      else ranges.push({ start: offset, end: offset + part.length })
    }
    offset += part.length
  }
  return ranges
}
