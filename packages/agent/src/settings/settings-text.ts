import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type DocumentOptions,
  type Node,
  type ParseOptions,
} from 'yaml'
import { visibleName } from '../util/visible-text.ts'

/** A settings file as data, not validated. */
interface WrittenSettings {
  value: unknown
  /** The line of this value, counted from one. */
  lineOf: (path: readonly PropertyKey[]) => number | undefined
}

export type ReadSettings =
  | { type: 'read'; written: WrittenSettings }
  | { type: 'malformed'; message: string; line?: number; column?: number }

type Malformed = ReadSettings & { type: 'malformed' }

/** Deeper than any setting; deeper nesting is hostile. */
const maxDepth = 16
/** Hostile text takes the parser about 20 microseconds per byte. */
const maxBytes = 64 * 1024

/** Standard JSON, or YAML without aliases: one line of them can expand to more than the memory. */
export function readSettingsText(bytes: Uint8Array, format: 'json' | 'yaml'): ReadSettings {
  if (bytes.length > maxBytes) return { type: 'malformed', message: `It is larger than ${maxBytes / 1024} KiB.` }
  const text = decode(bytes)
  if (typeof text !== 'string') return text
  const depth = deepNesting(text)
  if (depth) return depth
  return (format === 'json' ? jsonFault(text) : undefined) ?? readDocument(text)
}

function decode(bytes: Uint8Array): string | Malformed {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { type: 'malformed', message: 'It is not UTF-8 text.' }
  }
  const place = text.indexOf('\0')
  return place < 0 ? text : { type: 'malformed', message: 'It contains a NUL byte.', ...positionOf(text, place) }
}

/** The parser recurses for each bracket and each dash, so these are counted first. */
function deepNesting(text: string): Malformed | undefined {
  const message = 'It is nested too deeply.'
  const dashes = text.search(/^ *(?:[-?] +){64}/m)
  if (dashes >= 0) return { type: 'malformed', message, ...positionOf(text, dashes) }
  let depth = 0
  for (const { 0: bracket, index } of text.matchAll(/[[{\]}]/g)) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1
    if (depth > 64) return { type: 'malformed', message, ...positionOf(text, index) }
  }
  return undefined
}

function jsonFault(text: string): Malformed | undefined {
  const message = jsonError(text)
  if (message === undefined || text.trim() === '') return undefined
  // Not every message has the position: it is the end of the shortest prefix that cannot be completed to valid JSON.
  let good = 0
  let bad = text.length + 1
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (middle <= text.length && canGoOn(text.slice(0, middle))) good = middle
    else bad = middle
  }
  const what = message.replace(/,? (?:"|\.\.\.)[^]*$/, '').replace(/ (?:in |of |after )?JSON.*$/, '')
  return { type: 'malformed', message: `It is not JSON: ${visibleName(what)}.`, ...positionOf(text, good) }
}

function canGoOn(start: string): boolean {
  const message = jsonError(start)
  if (message === undefined || /end of JSON input|^Unterminated/.test(message)) return true
  const position = /at position (\d+)/.exec(message)?.[1]
  return position !== undefined && Number(position) >= start.length
}

function jsonError(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function readDocument(text: string): ReadSettings {
  const lines = new LineCounter()
  const document = parseDocument(text, parserOptions(lines))
  // A warning is about a type that is not built into YAML.
  const [fault] = [...document.errors, ...document.warnings]
  if (fault) return { type: 'malformed', message: faultText(fault.message), ...lineAndColumn(lines, fault.pos[0]) }
  const placed = new Map<string, number>()
  try {
    const value = plainValue(document.contents, [], (path, node) => {
      const start = node.range?.[0]
      if (start !== undefined) placed.set(JSON.stringify(path), lines.linePos(start).line)
    })
    return { type: 'read', written: { value: value ?? {}, lineOf: (path) => placed.get(JSON.stringify(path)) } }
  } catch (error) {
    if (!(error instanceof Unusable)) throw error
    return { type: 'malformed', message: error.message, ...lineAndColumn(lines, error.node?.range?.[0]) }
  }
}

/** Duplicate names are checked here, since the parser compares each with each. */
function parserOptions(lineCounter: LineCounter): ParseOptions & DocumentOptions {
  return { lineCounter, prettyErrors: false, logLevel: 'error', uniqueKeys: false }
}

function faultText(message: string): string {
  if (message.startsWith('Maximum call stack')) return 'It is nested too deeply.'
  if (message.startsWith('Source contains multiple')) return 'It contains more than one document.'
  return `${visibleName(message.slice(0, 200)).replace(/\.$/, '')}.`
}

class Unusable extends Error {
  readonly node: Node | null

  constructor(message: string, node: Node | null) {
    super(message)
    this.node = node
  }
}

type Place = (path: readonly PropertyKey[], node: Node) => void

function plainValue(node: unknown, path: readonly PropertyKey[], place: Place): unknown {
  if (node === null) return null
  const here = node as Node
  if (path.length > maxDepth) throw new Unusable('It is nested too deeply.', here)
  if (isAlias(node)) throw new Unusable('It uses an alias (*name), which is not supported.', here)
  if (isScalar(node)) {
    place(path, here)
    return node.value
  }
  if (isSeq(node)) {
    place(path, here)
    return node.items.map((item, index) => plainValue(item, [...path, index], place))
  }
  if (!isMap(node)) throw new Unusable('It contains something that is not a setting.', here)
  const value: Record<string, unknown> = {}
  for (const pair of node.items) {
    const key = isScalar(pair.key) ? pair.key.value : undefined
    if (typeof key !== 'string') throw new Unusable('A name is not a text.', pair.key as Node | null)
    if (Object.hasOwn(value, key)) throw new Unusable('This name occurs twice.', pair.key as Node)
    if (key === '__proto__') throw new Unusable('A name cannot be __proto__.', pair.key as Node)
    value[key] = plainValue(pair.value, [...path, key], place)
    place([...path, key], pair.key as Node)
  }
  return value
}

function lineAndColumn(lines: LineCounter, offset: number | undefined): { line?: number; column?: number } {
  if (offset === undefined) return {}
  const { line, col } = lines.linePos(offset)
  return { line, column: col }
}

function positionOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n')
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
