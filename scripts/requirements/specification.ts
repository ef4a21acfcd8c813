import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** A heading of a specification document and the statements below it. */
export interface Section {
  heading: string
  /** 1 for `#`, 2 for `##`. */
  level: number
  statements: Statement[]
}

/** A sentence, a table row, or a line of code or of a diagram. */
interface Statement {
  digest: string
  text: string
}

/** Sections by document name. */
export type Specification = ReadonlyMap<string, readonly Section[]>

/** Returns undefined if the folder does not exist: a clone can be without the specification. */
export function readSpecification(folder: string): Specification | undefined {
  if (!existsSync(folder)) return undefined
  const files = globSync('*.md', { cwd: folder })
  return new Map(files.map((file) => [basename(file, '.md'), sectionsOf(readFileSync(join(folder, file), 'utf8'))]))
}

/** Omits what says nothing: code fences, lines of punctuation and the `end` of a diagram block. */
export function sectionsOf(markdown: string): Section[] {
  const sections: Section[] = []
  let isCode = false
  const begin = (heading: string, level: number): void => void sections.push({ heading, level, statements: [] })
  for (const line of markdown.split('\n').map((text) => text.trim())) {
    const [, marks, heading] = (!isCode && /^(#+) (.*)/.exec(line)) || []
    if (line.startsWith('```')) isCode = !isCode
    else if (marks !== undefined && heading !== undefined) begin(heading, marks.length)
    else if (/[\p{L}\p{N}]/u.test(line) && line !== 'end') {
      if (sections.length === 0) begin('', 1)
      sections.at(-1)?.statements.push(...statementsOf(line, isCode))
    }
  }
  return sections
}

/** Splits prose into sentences without list marks. The digest ignores the amount of white space. */
function statementsOf(line: string, isCode: boolean): Statement[] {
  const text = line.replace(/\s+/g, ' ')
  const isWhole = isCode || text.startsWith('|')
  const texts = isWhole ? [text] : text.replace(/^([-*]|\d+\.) /, '').split(/(?<=[.?!]) (?=[A-Z`*"])/)
  return texts.map((statement) => ({ digest: digestOf(statement), text: statement }))
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}
