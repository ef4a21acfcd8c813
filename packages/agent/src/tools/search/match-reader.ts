export type MatchLine =
  | { type: 'match' | 'context'; path: string; line: number; text: string }
  /** The search of a file ended early, because it is not text. */
  | { type: 'binary'; path: string }

/** Reads what ripgrep prints with `--null --line-number --with-filename --no-heading`, in whatever pieces it comes. */
export class MatchReader {
  #rest = ''

  read(text: string): MatchLine[] {
    this.#rest += text
    const lines: MatchLine[] = []
    let at = 0
    while (true) {
      const next = readLine(this.#rest, at)
      if (!next) break
      lines.push(next.line)
      at = next.end
    }
    this.#rest = this.#rest.slice(at)
    return lines
  }
}

function readLine(text: string, start: number): { line: MatchLine; end: number } | undefined {
  binaryNotice.lastIndex = start
  const notice = binaryNotice.exec(text)
  if (notice) return { line: { type: 'binary', path: notice[1] ?? '' }, end: binaryNotice.lastIndex }
  matchLine.lastIndex = start
  const match = matchLine.exec(text)
  if (!match) return undefined
  const [, path = '', line, mark, content = ''] = match
  return {
    line: { type: mark === ':' ? 'match' : 'context', path, line: Number(line), text: content.replace(/\r$/, '') },
    end: matchLine.lastIndex,
  }
}

const matchLine = /([^\0]*)\0(\d+)([:-])([^\n]*)\n/y
const binaryNotice =
  /([^\0\n]*): (?:WARNING: stopped searching binary file after match|binary file matches) \(found "\\0" byte around offset \d+\)\n/y
