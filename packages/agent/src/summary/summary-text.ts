import { filesText, parseFiles, type TouchedFiles } from './touched-files.ts'

/** What the summary of a compaction is made of. */
export interface SummaryParts {
  /** What was done and said before. */
  history: string
  /** How the request began whose end is kept; empty where the cut lies between two requests. */
  unfinished: string
  /** Known from the tool calls, so that no file depends on the model's memory. */
  files: TouchedFiles
}

const unfinishedHeading = '## The request being worked on (only how it began; what was done last follows below)'

export function joinSummary({ history, unfinished, files }: SummaryParts): string {
  const begun = unfinished === '' ? '' : `${unfinishedHeading}\n\n${unfinished}`
  return [history, begun, filesText(files)].filter((part) => part !== '').join('\n\n')
}

/** Takes a summary apart again, so that the next one can go on from it. */
export function splitSummary(summary: string): SummaryParts {
  const { words, files } = parseFiles(summary)
  const at = words.lastIndexOf(unfinishedHeading)
  if (at === -1) return { history: words, unfinished: '', files }
  const unfinished = words.slice(at + unfinishedHeading.length).trim()
  return { history: words.slice(0, at).trimEnd(), unfinished, files }
}
