import { similarityTo } from './similarity.ts'

export interface TextEdit {
  oldText: string
  newText: string
  /** Otherwise the old text must occur exactly once. */
  replaceAll: boolean
}

export type EditedText = { type: 'edited'; text: string; count: number } | { type: 'refused'; reason: string }

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
    `oldText is there ${places.length} times, at lines ${lines.join(', ')}${more}. ` +
    'Give more of the text around the one you mean, or set replaceAll to change them all.'
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
    return `${said} Its lines begin with line numbers: leave out the number and the tab that read puts before each line.`
  }
  if (wanted.includes('\r\n') && text.includes(wanted.replaceAll('\r\n', '\n'))) {
    return `${said} It is there with other line ends: give it with plain line feeds.`
  }
  const loose = findLoosely(lines, wantedLines)
  if (loose) {
    const { line, found, given } = loose
    return (
      `${said} It is there from line ${line} on, but with other whitespace. ` +
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
