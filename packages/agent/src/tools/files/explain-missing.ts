import { similarityTo } from './similarity.ts'

const maxLinesCompared = 20_000
const maxShownLength = 200

/** Why a text that should be in a file is not found there, as far as one can see. */
export function explainMissing(text: string, wanted: string): string {
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

/** The number of the line with this place, counted from 1. */
export function lineAt(text: string, place: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < place; at = text.indexOf('\n', at + 1)) line += 1
  return line
}

/** The same lines with other whitespace, and the first pair that differs. */
function findLoosely(lines: string[], wanted: string[]): { line: number; found: string; given: string } | undefined {
  const bare = lines.map(withoutSpace)
  const bareWanted = wanted.map(withoutSpace)
  // A text that ends with a line break has an empty last part, which is not a line.
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

/** Quoted, so that tabs and spaces can be told apart. */
function shown(line: string): string {
  return JSON.stringify(line.length > maxShownLength ? `${line.slice(0, maxShownLength)}…` : line)
}
