import { explainMissing, lineAt } from './explain-missing.ts'

export interface TextEdit {
  oldText: string
  newText: string
  /** Otherwise the old text must be there exactly once. */
  replaceAll: boolean
}

export type EditedText = { type: 'edited'; text: string; count: number } | { type: 'refused'; reason: string }

/**
 * Replaces text. Where the old text has no carriage returns it is found whatever the file's line ends are, lines that are not
 * changed keep theirs, and new lines take the end of the line where they begin. With carriage returns both texts are taken literally.
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

/** A text as it is searched, and the way back from a place in it to the place in the file. */
interface View {
  text: string
  placeInFile(at: number): number
  /** How the line with this place ends. */
  lineEndAt(at: number): string
}

function literalView(text: string): View {
  return { text, placeInFile: (at) => at, lineEndAt: () => '\n' }
}

/** The text with every CRLF as LF. */
function linesView(file: string): View {
  const text = file.replaceAll('\r\n', '\n')
  /** Where a carriage return is missing: the places of its line feed in the view, rising. */
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

/** How many of the rising numbers are smaller. */
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

/** The smallest change that does it, in places of the file: what both texts begin and end with is left alone. */
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
