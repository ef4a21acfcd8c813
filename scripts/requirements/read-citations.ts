/** The ids that one scenario cites. */
export interface Citation {
  file: string
  line: number
  ids: string[]
}

/** Reads the calls of `verifies` from the text of a test file, without running it. Calls in comments do not count. */
export function readCitations(file: string, source: string): Citation[] {
  const code = blankComments(source)
  return [...code.matchAll(/\bverifies\(\s*\[([^\]]*)\]/g)].map((call) => ({
    file,
    line: code.slice(0, call.index).split('\n').length,
    ids: [...(call[1] ?? '').matchAll(/'([^']*)'|"([^"]*)"/g)].map(([, single, double]) => single ?? double ?? ''),
  }))
}

/** Only comments that begin a line: `//` may stand in a string. */
function blankComments(source: string): string {
  return source
    .replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, (comment) => comment.replace(/[^\n]/g, ' '))
    .replace(/^[ \t]*\/\/.*$/gm, '')
}
