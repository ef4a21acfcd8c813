import { isCollection, isMap, isScalar, LineCounter, parseDocument, visit, type Document } from 'yaml'
import { oneLine } from '../util/visible-text.ts'

export type FrontMatter =
  /** Every value is a string, a list or a Map: nothing is converted to a number or a date. */
  | { type: 'parsed'; fields: ReadonlyMap<string, unknown>; body: string; hasFields: boolean }
  /** `line` counts from the beginning of the file. */
  | { type: 'invalid'; problem: string; line: number }

const maxLength = 8 * 1024
const maxDepth = 4

/** The fields between two lines `---` at the beginning of a Markdown file, and the text after them. */
export function parseFrontMatter(text: string): FrontMatter {
  if (!/^---[ \t]*(?:\n|$)/.test(text)) return { type: 'parsed', fields: new Map(), body: text, hasFields: false }
  const start = text.indexOf('\n') + 1
  const end = start === 0 ? -1 : closingLine(text, start)
  if (end === -1) return { type: 'invalid', problem: 'the front matter has no closing line ---', line: 1 }
  if (end - start > maxLength) {
    return { type: 'invalid', problem: `the front matter has more than ${maxLength} characters`, line: 1 }
  }
  const afterLine = text.indexOf('\n', end)
  const body = afterLine === -1 ? '' : text.slice(afterLine + 1)
  return parseFields(text.slice(start, end), body)
}

function closingLine(text: string, from: number): number {
  for (let at = from; at !== 0; at = text.indexOf('\n', at) + 1) {
    // Checks only the text after the dashes, so that a line of many blanks is not searched repeatedly.
    if (text.startsWith('---', at) && /^[ \t]{0,80}(?:\n|$)/.test(text.slice(at + 3, at + 84))) return at
  }
  return -1
}

function parseFields(source: string, body: string): FrontMatter {
  const lines = new LineCounter()
  // Duplicate keys are checked below: the parser would compare each with each.
  const document = parseDocument(source, {
    schema: 'failsafe',
    stringKeys: true,
    uniqueKeys: false,
    lineCounter: lines,
  })
  // The first line of the file is the one with the dashes.
  const lineAt = (offset: number): number => lines.linePos(offset).line + 1
  const [error] = [...document.errors, ...document.warnings]
  if (error) return { type: 'invalid', problem: parseProblem(error), line: lineAt(error.pos[0]) }
  const flaw = findFlaw(document)
  if (flaw) return { type: 'invalid', problem: flaw.problem, line: lineAt(flaw.offset) }
  const fields = (document.toJS({ mapAsMap: true, maxAliasCount: 0 }) ?? new Map()) as ReadonlyMap<string, unknown>
  return { type: 'parsed', fields, body, hasFields: true }
}

function parseProblem({ code, message }: { code: string; message: string }): string {
  const [first = ''] = message.split('\n')
  const words = oneLine(first.replace(/ at line \d+, column \d+:?$/, ''))
  const hint = code === 'BLOCK_AS_IMPLICIT_KEY' ? '; a value with a colon in it needs quotes' : ''
  return `the front matter is not valid YAML: ${words}${hint}`
}

interface Flaw {
  problem: string
  offset: number
}

function findFlaw(document: Document.Parsed): Flaw | undefined {
  const { contents } = document
  if (contents !== null && !isMap(contents)) {
    return { problem: 'the front matter is not a list of `name: value`', offset: contents.range[0] }
  }
  let flaw: Flaw | undefined
  const stop = (problem: string, node: { range?: readonly number[] | null | undefined }): symbol => {
    flaw = { problem, offset: node.range?.[0] ?? 0 }
    return visit.BREAK
  }
  visit(document, {
    Alias: (_, node) => stop('the front matter has an alias, which is not supported', node),
    Node: (_, node, path) => {
      if ('anchor' in node && node.anchor !== undefined) {
        return stop('the front matter has an anchor, which is not supported', node)
      }
      if (isCollection(node) && path.filter(isCollection).length >= maxDepth) {
        return stop(`the front matter is nested more than ${maxDepth} deep`, node)
      }
      if (!isMap(node)) return undefined
      const seen = new Set<string>()
      for (const { key } of node.items) {
        const name = isScalar(key) ? String(key.value) : ''
        if (seen.has(name)) return stop(`the front matter has \`${oneLine(name)}\` twice`, isScalar(key) ? key : node)
        seen.add(name)
      }
      return undefined
    },
  })
  return flaw
}
