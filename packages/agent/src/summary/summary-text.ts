import { filesText, parseFiles, type TouchedFiles } from './touched-files.ts'

/** The parts of the summary of a compaction. */
export interface SummaryParts {
  /** The history before the current request. */
  history: string
  /** The beginning of the request whose end is kept; empty if the cut is between two requests. */
  unfinished: string
  /** Known from the tool calls, so that no file depends on the memory of the model. */
  files: TouchedFiles
}

const unfinishedHeading = '## The request being worked on (only how it began; what was done last follows below)'

export function joinSummary({ history, unfinished, files }: SummaryParts): string {
  const begun = unfinished === '' ? '' : `${unfinishedHeading}\n\n${unfinished}`
  return [history, begun, filesText(files)].filter((part) => part !== '').join('\n\n')
}

/** Splits a summary into its parts, so that the next one can extend it. */
export function splitSummary(summary: string): SummaryParts {
  const { text, files } = parseFiles(summary)
  const at = text.lastIndexOf(unfinishedHeading)
  if (at === -1) return { history: text, unfinished: '', files }
  const unfinished = text.slice(at + unfinishedHeading.length).trim()
  return { history: text.slice(0, at).trimEnd(), unfinished, files }
}
