import { join } from 'node:path'
import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { isFolder, judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { limitOutput } from '../output-limit.ts'
import { compileGlob } from '../search/glob.ts'
import { argumentSchema, nameArguments, ripgrep } from '../search/ripgrep.ts'
import { openSearchPlace } from '../files/held-folder.ts'
import { defineTool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems } from '../tool-problem.ts'

const defaultLimit = 100
const maxLimit = 1000
const maxLineLength = 500

const schema = z.object({
  pattern: argumentSchema.describe('A regular expression, in the syntax of ripgrep.'),
  path: pathSchema.optional().describe('The folder or file to search; default: the working folder.'),
  glob: argumentSchema.optional().describe('Only files whose path matches, such as `*.ts` or `src/**/*.{ts,tsx}`.'),
  ignoreCase: z.boolean().optional(),
  literal: z.boolean().optional().describe('Treat the pattern as plain text.'),
  context: z.int().min(0).max(20).optional().describe('Lines to show before and after each match.'),
  limit: z
    .int()
    .min(1)
    .max(maxLimit)
    .optional()
    .describe(`The maximum number of matches to show; default ${defaultLimit}.`),
})

type GrepInput = z.output<typeof schema>

export const grepTool = defineTool({
  name: 'grep',
  description: descriptionOf('grep'),
  schema,
  readOnly: true,
  replay: 'safe',
  access: ({ path = '.' }, place) => {
    const real = realPathOf(path, place)
    return [{ type: 'read', path: real, ...(isFolder(real) && { isRecursive: true }) }]
  },
  run: (input, context, judged) => answerProblems(() => grep(judgedPath(judged, 'read'), input, context)),
})

async function grep(path: string, input: GrepInput, context: ToolContext): Promise<ToolOutput> {
  await using place = await openSearchPlace(path, context)
  const glob = place.type === 'folder' && input.glob !== undefined ? compileGlob(input.glob) : undefined
  const found = new Found(input.limit ?? defaultLimit, (file) => {
    if (place.type === 'file') return path
    const relative = file.slice('./'.length)
    return !glob || glob.matches(relative) ? join(path, relative) : undefined
  })
  const reader = new MatchReader()
  const { complaints } = await ripgrep({
    arguments: [
      ...searchArguments(input),
      ...nameArguments(glob?.names),
      `--regexp=${input.pattern}`,
      '--',
      place.type === 'folder' ? './' : '-',
    ],
    workingFolder: place.type === 'folder' ? place.folder.workingFolder : context.cwd,
    ...(place.type === 'file' && { input: place.file.fd }),
    signal: context.signal,
    take: (text) => found.add(reader.read(text)),
  })
  return { content: await limitOutput(describe(found, complaints, context), context) }
}

function searchArguments({ ignoreCase, literal, context }: GrepInput): string[] {
  return [
    '--line-number',
    '--with-filename',
    '--no-heading',
    '--no-context-separator',
    `--max-columns=${maxLineLength}`,
    '--max-columns-preview',
    ...(ignoreCase ? ['--ignore-case'] : []),
    ...(literal ? ['--fixed-strings'] : []),
    ...(context === undefined ? [] : [`--context=${context}`]),
  ]
}

/** The matches so far, up to a limit. */
class Found {
  readonly lines: MatchLine[] = []
  readonly limit: number
  readonly #pathOf: (file: string) => string | undefined
  matches = 0
  hasMore = false

  /** `pathOf` returns undefined for files to skip. */
  constructor(limit: number, pathOf: (file: string) => string | undefined) {
    this.limit = limit
    this.#pathOf = pathOf
  }

  /** Returns false when the limit is reached. */
  add(lines: MatchLine[]): boolean {
    for (const line of lines) {
      const path = this.#pathOf(line.path)
      if (path === undefined) continue
      this.hasMore = line.type === 'match' && this.matches === this.limit
      if (this.hasMore) return false
      if (line.type === 'match') this.matches += 1
      this.lines.push({ ...line, path })
    }
    return true
  }
}

function describe(found: Found, complaints: string, context: ToolContext): string {
  const parts: string[] = []
  const hasContext = found.lines.some(({ type }) => type === 'context')
  let last: MatchLine | undefined
  for (const line of found.lines) {
    if (line.path !== last?.path) parts.push(`${last ? '\n' : ''}${shownPath(line.path, context)}`)
    else if (hasContext && !follows(line, last)) parts.push('--')
    parts.push(describeLine(line))
    last = line
  }
  if (found.lines.length === 0) parts.push('No matches.')
  if (found.hasMore) parts.push(`\n[Stopped after ${found.limit} matches. Narrow the search, or raise the limit.]`)
  if (complaints) parts.push(`\n[Some files could not be searched: ${complaints}]`)
  return parts.join('\n')
}

function follows(line: MatchLine, last: MatchLine): boolean {
  return line.type === 'binary' || last.type === 'binary' || line.line === last.line + 1
}

function describeLine(line: MatchLine): string {
  switch (line.type) {
    case 'match':
      return `${line.line}: ${line.text}`
    case 'context':
      return `${line.line}- ${line.text}`
    case 'binary':
      return '[This file is binary; it was not searched to its end.]'
    default:
      return line satisfies never
  }
}

type MatchLine =
  | { type: 'match' | 'context'; path: string; line: number; text: string }
  /** The search of a file ended early, because it is not text. */
  | { type: 'binary'; path: string }

/** Parses ripgrep's output with `--null --line-number --with-filename --no-heading`, for any chunk boundaries. */
class MatchReader {
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
