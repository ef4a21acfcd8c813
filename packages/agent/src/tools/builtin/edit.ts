import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { changeFile, maxHeldBytes, previewChange, type FileBefore, type FileChange } from '../files/file-change.ts'
import { missingProblem, judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { limitOutput } from '../output-limit.ts'
import { decodeTextFile, encodeTextFile, unifiedDiff } from '../files/text-file.ts'
import { defineTool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, hasCode, problemOf, ToolProblem } from '../tool-problem.ts'
import { similarityTo } from '../../util/edit-distance.ts'

const schema = z.object({
  path: pathSchema.describe('The file to change.'),
  oldText: z
    .string()
    .min(1, { error: 'oldText is empty. To create a file use write.' })
    .describe('The text to replace, exactly as it is in the file.'),
  newText: z.string().describe('The text that replaces it.'),
  replaceAll: z.boolean().optional().describe('Replace every occurrence of oldText, not just one.'),
})

type EditInput = z.output<typeof schema>

export const editTool = defineTool({
  name: 'edit',
  description: descriptionOf('edit'),
  schema,
  replay: 'never',
  // The result shows parts of the file.
  access: ({ path }, place) => {
    const real = realPathOf(path, place)
    return [
      { type: 'read', path: real },
      { type: 'write', path: real },
    ]
  },
  preflight: (input, context, judged) => {
    const path = judgedPath(judged, 'write')
    const preview = (): Promise<void> => previewChange(changeOf(path, input, context), context)
    return problemOf(() => explainingMissing(path, context, preview))
  },
  run: (input, context, judged) => answerProblems(() => edit(judgedPath(judged, 'write'), input, context)),
})

async function edit(path: string, input: EditInput, context: ToolContext): Promise<ToolOutput> {
  const { before, after } = await explainingMissing(path, context, () =>
    changeFile(changeOf(path, input, context), context),
  )
  const name = shownPath(path, context)
  const { bytes, count } = after
  const diff = await limitOutput(unifiedDiff({ name, before: before?.bytes, after: bytes }), context)
  return { content: `Edited ${name}: ${count === 1 ? '1 replacement' : `${count} replacements`}.\n\n${diff}` }
}

function changeOf(path: string, input: EditInput, context: ToolContext): FileChange<{ bytes: Buffer; count: number }> {
  return {
    given: input.path,
    path,
    isThere: true,
    content: async (file) => {
      if (!file) throw await missingProblem(path, context)
      return editFile(shownPath(path, context), file, input)
    },
  }
}

async function explainingMissing<T>(path: string, context: ToolContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw hasCode(error, 'ENOENT', 'ENOTDIR') ? await missingProblem(path, context) : error
  }
}

function editFile(name: string, before: FileBefore, input: EditInput): { bytes: Buffer; count: number } {
  if (input.oldText === input.newText)
    throw new ToolProblem('oldText and newText are the same, so nothing would change.')
  if (!before.bytes) throw new ToolProblem(`${name} is too large to edit: it has more than ${maxHeldBytes} bytes.`)
  const file = decodeTextFile(before.bytes)
  if (!file) throw new ToolProblem(`${name} is not valid UTF-8 or UTF-16 text, so it cannot be edited as text.`)
  const result = editText(file.text, { ...input, replaceAll: input.replaceAll ?? false })
  if (result.type === 'refused') throw new ToolProblem(`${name} was not changed. ${result.reason}`)
  return { bytes: encodeTextFile({ ...file, text: result.text }), count: result.count }
}

export interface TextEdit {
  oldText: string
  newText: string
  /** Otherwise the old text must occur exactly once. */
  replaceAll: boolean
}

type EditedText = { type: 'edited'; text: string; count: number } | { type: 'refused'; reason: string }

/**
 * Replaces text. If the old text has no carriage returns it matches any line endings, unchanged lines keep
 * theirs, and new lines take the ending of the line where they begin. With carriage returns both texts are
 * taken literally.
 */
export function editText(text: string, edit: TextEdit): EditedText {
  const view = edit.oldText.includes('\r') ? literalView(text) : linesView(text)
  const places = findAll(view.text, edit.oldText)
  if (places.length === 0) return refused(explainMissing(view.text, edit.oldText))
  if (places.length > 1 && !edit.replaceAll) return refused(explainSeveral(view.text, places))
  const parts: string[] = []
  let done = 0
  for (const place of places) {
    const change = changeAt(view, place, edit)
    parts.push(text.slice(done, change.start), change.text)
    done = change.end
  }
  parts.push(text.slice(done))
  return { type: 'edited', text: parts.join(''), count: places.length }
}

/** A searchable text, and the mapping from its offsets to those of the file. */
interface View {
  text: string
  placeInFile(at: number): number
  /** The ending of the line at this offset. */
  lineEndAt(at: number): string
}

function literalView(text: string): View {
  return { text, placeInFile: (at) => at, lineEndAt: () => '\n' }
}

/** The text with every CRLF as LF. */
function linesView(file: string): View {
  const text = file.replaceAll('\r\n', '\n')
  /** Offsets of line feeds in the view that had a carriage return, ascending. */
  const missing: number[] = []
  for (let at = file.indexOf('\r\n'); at !== -1; at = file.indexOf('\r\n', at + 2)) missing.push(at - missing.length)
  return {
    text,
    placeInFile: (at) => at + countBelow(missing, at),
    lineEndAt: (at) => {
      const next = text.indexOf('\n', at)
      const end = next === -1 ? text.lastIndexOf('\n') : next
      return missing[countBelow(missing, end)] === end && end !== -1 ? '\r\n' : '\n'
    },
  }
}

/** How many of the ascending numbers are smaller. */
function countBelow(rising: number[], limit: number): number {
  let [low, high] = [0, rising.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rising[middle] ?? limit) < limit) low = middle + 1
    else high = middle
  }
  return low
}

function findAll(text: string, wanted: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) places.push(at)
  return places
}

/** The smallest equivalent change, in offsets of the file: a common prefix and suffix are kept. */
function changeAt(
  view: View,
  at: number,
  { oldText, newText }: TextEdit,
): { start: number; end: number; text: string } {
  if (oldText.includes('\r') || newText.includes('\r')) {
    return { start: view.placeInFile(at), end: view.placeInFile(at + oldText.length), text: newText }
  }
  const shorter = Math.min(oldText.length, newText.length)
  let same = 0
  while (same < shorter && oldText[same] === newText[same]) same += 1
  let sameAtEnd = 0
  while (sameAtEnd < shorter - same && oldText.at(-1 - sameAtEnd) === newText.at(-1 - sameAtEnd)) sameAtEnd += 1
  const start = at + same
  const end = at + oldText.length - sameAtEnd
  const lineEnd = view.lineEndAt(start)
  return {
    start: view.placeInFile(start),
    end: view.placeInFile(end),
    text: newText.slice(same, newText.length - sameAtEnd).replaceAll('\n', lineEnd),
  }
}

const maxPlacesShown = 10

function explainSeveral(text: string, places: number[]): string {
  const lines = places.slice(0, maxPlacesShown).map((place) => lineAt(text, place))
  const more = places.length > maxPlacesShown ? ' and more' : ''
  return (
    `oldText occurs ${places.length} times, at lines ${lines.join(', ')}${more}. ` +
    'Include more of the surrounding text, or set replaceAll to change all of them.'
  )
}

function refused(reason: string): EditedText {
  return { type: 'refused', reason }
}

const maxLinesCompared = 20_000
const maxShownLength = 200

/** Explains why a text was not found, as far as possible. */
function explainMissing(text: string, wanted: string): string {
  const lines = text.split('\n')
  const wantedLines = wanted.split('\n')
  const said = 'oldText is not in the file.'
  if (wantedLines.every((line) => /^\s*\d+\t/.test(line))) {
    return `${said} Its lines begin with line numbers: leave out the number and the tab that read adds to each line.`
  }
  if (wanted.includes('\r\n') && text.includes(wanted.replaceAll('\r\n', '\n'))) {
    return `${said} It occurs with other line endings: use plain line feeds.`
  }
  const loose = findLoosely(lines, wantedLines)
  if (loose) {
    const { line, found, given } = loose
    return (
      `${said} It occurs from line ${line} on with different whitespace. ` +
      `The file has ${shown(found)} where oldText has ${shown(given)}.`
    )
  }
  const nearest = nearestLine(lines, wantedLines)
  const hint = nearest && ` The most similar line is line ${nearest.line}: ${shown(nearest.text)}.`
  return `${said}${hint ?? ''} Read the file again and copy the text exactly.`
}

/** The line number at this offset, from 1. */
function lineAt(text: string, place: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < place; at = text.indexOf('\n', at + 1)) line += 1
  return line
}

/** The same lines with different whitespace, and the first pair that differs. */
function findLoosely(lines: string[], wanted: string[]): { line: number; found: string; given: string } | undefined {
  const bare = lines.map(withoutSpace)
  const bareWanted = wanted.map(withoutSpace)
  // Text that ends with a line break has an empty last part, which is not a line.
  if (bareWanted.length > 1 && bareWanted.at(-1) === '') bareWanted.pop()
  if (bareWanted.every((line) => line === '')) return undefined
  const first = bare.findIndex((_, at) => bareWanted.every((line, index) => bare[at + index] === line))
  if (first === -1) return undefined
  const differing = bareWanted.findIndex((_, index) => lines[first + index] !== wanted[index])
  const at = Math.max(0, differing)
  return { line: first + 1, found: lines[first + at] ?? '', given: wanted[at] ?? '' }
}

function withoutSpace(line: string): string {
  return line.replaceAll(/\s+/g, '')
}

function nearestLine(lines: string[], wanted: string[]): { line: number; text: string } | undefined {
  const longest = wanted
    .map((line) => line.trim())
    .reduce((best, line) => (line.length > best.length ? line : best), '')
  const likenessOf = similarityTo(longest)
  let best = { line: 0, text: '', likeness: 0.4 }
  for (const [index, text] of lines.slice(0, maxLinesCompared).entries()) {
    const bare = text.trim()
    if (bare.length > 2 * longest.length + 10 || longest.length > 2 * bare.length + 10) continue
    const likeness = likenessOf(bare)
    if (likeness > best.likeness) best = { line: index + 1, text, likeness }
  }
  return best.line > 0 ? best : undefined
}

/** Quoted, so that tabs and spaces are distinguishable. */
function shown(line: string): string {
  return JSON.stringify(line.length > maxShownLength ? `${line.slice(0, maxShownLength)}…` : line)
}
