import type { Content, Session, SessionStore } from '@tapetree/session'
import { memoryStore } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'
import { createRedactor } from '@tapetree/agent/settings'
import {
  importSession,
  type ImportedSession,
  type LineReport,
} from '../../../packages/cli/src/import/import-session.ts'
import { dropReasons, mergeReasons, type FoundSession } from '../../../packages/cli/src/import/import-source.ts'
import { maxDepth } from '../../../packages/cli/src/import/source-lines.ts'
import { imageIn, saidIn } from './said.ts'
import { withLines, type Specimen } from './specimens.ts'

export interface Checked {
  problems: string[]
  store: SessionStore
  result: ImportedSession
}

const redactor = createRedactor()

/** Imports some lines and checks what became of each, twice. */
export async function checkImport(specimen: Specimen, lines: readonly string[]): Promise<Checked> {
  const store = memoryStore()
  const found = withLines(specimen, lines)
  const reports: LineReport[] = []
  const result = await importInto(store, found, reports)
  const problems = [...fatesOf(reports, lines)]
  if (result.outcome === 'empty') {
    const said = lines.flatMap((line) => saidBy(specimen, line, reports[0]))
    return {
      problems: said.length > 0 && reports.some(isKept) ? [...problems, 'nothing was imported'] : problems,
      store,
      result,
    }
  }
  await using session = await store.open(result.id)
  const entries = await entriesOf(session)
  problems.push(...missing(specimen, { lines, reports, haystack: textsOf(entries, await notesOf(session)) }))
  problems.push(...faultsOf(session, entries))
  const head = session.head.seq
  const again = await importInto(store, found)
  if (again.outcome !== 'unchanged' || session.head.seq !== head) {
    problems.push(
      `a second import is ${again.outcome} and adds ${again.added} lines, ${session.head.seq - head} in the log`,
    )
  }
  return { problems, store, result }
}

async function importInto(
  store: SessionStore,
  found: FoundSession,
  reports: LineReport[] = [],
): Promise<ImportedSession> {
  return importSession(found, { store, redactor, onLine: (line) => reports.push(line) })
}

function isKept({ fate }: LineReport): boolean {
  return fate.type === 'kept'
}

/** Every line that is not blank is reported once, with a reason from the tables, and the reason is true. */
function fatesOf(reports: readonly LineReport[], lines: readonly string[]): string[] {
  const byNumber = Map.groupBy(reports, ({ number }) => number)
  return lines.flatMap((line, index) => {
    const own = byNumber.get(index + 1) ?? []
    if (own.length !== (line.trim() === '' ? 0 : 1)) return [`line ${index + 1} was reported ${own.length} times`]
    const fate = own[0]?.fate
    if (fate === undefined || fate.type === 'kept') return []
    if (!(fate.reason in (fate.type === 'merged' ? mergeReasons : dropReasons))) return [`${fate.reason} is no reason`]
    if (fate.reason === 'malformed' && isObject(line))
      return [`line ${index + 1} is an object and was called malformed`]
    if (fate.reason === 'too-deep' && depthOf(line) <= maxDepth) return [`line ${index + 1} was called too deep`]
    return []
  })
}

function isObject(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Brackets inside of strings count for nothing. */
function depthOf(line: string): number {
  let depth = 0
  let deepest = 0
  for (const bracket of line.replaceAll(/"(?:[^"\\]|\\.)*"/g, '')) {
    if (bracket === '{' || bracket === '[') deepest = Math.max(deepest, ++depth)
    if (bracket === '}' || bracket === ']') depth -= 1
  }
  return deepest
}

/** Lines that cannot be read are reported as such; what all others say is in the session. */
function saidBy(specimen: Specimen, line: string, report: LineReport | undefined): string[] {
  if (!isObject(line) || (report?.fate.type === 'dropped' && unreadable.has(report.fate.reason))) return []
  return saidIn(specimen.source, JSON.parse(line) as Record<string, unknown>)
}

const unreadable: ReadonlySet<string> = new Set(['malformed', 'too-long', 'too-deep'])

interface Accounting {
  lines: readonly string[]
  reports: readonly LineReport[]
  /** All text of the session. */
  haystack: string
}

function missing(specimen: Specimen, { lines, reports, haystack }: Accounting): string[] {
  const byNumber = new Map(reports.map((report) => [report.number, report]))
  /** How often kept lines say something: that often it must be there. */
  const said = new Map<string, number>()
  const problems: string[] = []
  for (const [index, line] of lines.entries()) {
    const report = byNumber.get(index + 1)
    for (const text of new Set(saidBy(specimen, line, report))) {
      if (!haystack.includes(text))
        problems.push(`line ${index + 1} (${report?.kind}) says ${shown(text)}, the session does not`)
      if (report && isKept(report)) said.set(text, (said.get(text) ?? 0) + 1)
    }
  }
  // A message of Gemini is written again when it has changed.
  if (specimen.source === 'gemini') return problems
  for (const [text, times] of said) {
    const found = haystack.split(text).length - 1
    if (found > 0 && found < times)
      problems.push(`${times} lines say ${shown(text)}, the session has it ${found} times`)
  }
  return problems
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}

/** What must never be in an imported session, and what must always hold. */
function faultsOf(session: Session, entries: readonly Entry[]): string[] {
  const problems: string[] = []
  if (session.grants.length > 0 || session.permissionMode !== undefined) problems.push('it has permissions')
  if (session.openRun || session.inbox.messages.length > 0 || session.pendingPermissions.length > 0) {
    problems.push('something in it waits to run')
  }
  if (session.damage.length > 0) problems.push(`its log is damaged: ${session.damage[0]?.reason}`)
  const ids = new Set<string>()
  for (const { id, parentId } of entries) {
    if (ids.has(id)) problems.push(`entry ${id} is there twice`)
    if (parentId !== null && !ids.has(parentId)) problems.push(`entry ${id} comes before its parent`)
    ids.add(id)
  }
  const roots = entries.filter(({ parentId }) => parentId === null)
  if (roots.length !== 1) problems.push(`it has ${roots.length} roots`)
  for (const entry of entries) {
    if (entry.type !== 'message') continue
    for (const block of entry.message.content) {
      if (block.type === 'reasoning' && block.reasoning.signature !== undefined)
        problems.push('a signature could be sent')
      if (block.type === 'image' && block.image.source.type === 'base64') problems.push('an image is in the log')
    }
  }
  return problems
}

/** All entries in the order of the log, with their whole values. */
export async function entriesOf(session: Session): Promise<Entry[]> {
  const entries: Entry[] = []
  const open: TreeNode[] = [...(await session.getTree())]
  for (let node = open.pop(); node; node = open.pop()) {
    entries.push(node.entry)
    open.push(...node.children)
  }
  const order: (entry: Entry) => number = ({ seq }) => seq
  return entries.sort((left, right) => order(left) - order(right))
}

/** Names that the session has or had. */
async function notesOf(session: Session): Promise<string[]> {
  const names: string[] = []
  for await (const line of session.lines()) {
    if (line.type !== 'line') continue
    const { session_info: info } = JSON.parse(line.text) as { session_info?: { name: string } }
    if (info) names.push(info.name)
  }
  return names
}

/** Everything that the entries say, also their names and what they keep for later. */
function textsOf(entries: readonly Entry[], notes: readonly string[]): string {
  const texts: string[] = [...notes]
  const collect = (value: unknown, isWholeLine = false): void => {
    if (typeof value === 'string') texts.push(value, ...(isWholeLine ? imageIn(value) : []))
    else if (typeof value === 'object' && value !== null)
      for (const each of Object.values(value)) collect(each, isWholeLine)
  }
  for (const entry of entries) {
    // A line that nobody understands is kept as it is, with its pictures.
    collect(entry, entry.type === 'custom')
    if (entry.type === 'message') texts.push(...imagesIn(entry.message.content))
  }
  return texts.join('\u0001')
}

function imagesIn(content: readonly Content[]): string[] {
  return content.flatMap((block) => {
    if (block.type === 'image' && block.image.source.type === 'blob') return [`image ${block.image.source.size}`]
    if (block.type !== 'tool_result' || typeof block.toolResult.content === 'string') return []
    return imagesIn(block.toolResult.content)
  })
}

/** Importing a part and then the whole must be the same as importing the whole. */
export async function checkPrefix(specimen: Specimen, lines: readonly string[], count: number): Promise<string[]> {
  const [whole, parts] = [memoryStore(), memoryStore()]
  const begun = Date.now()
  const first = await importInto(whole, withLines(specimen, lines))
  await importInto(parts, withLines(specimen, lines.slice(0, count)))
  await importInto(parts, withLines(specimen, lines))
  if (first.outcome === 'empty') return []
  await using left = await whole.open(first.id)
  await using right = await parts.open(first.id)
  const [expected, found] = [await stateOf(left), await stateOf(right)]
  // The lines that came first may have no time. Then it is that of the import.
  if (Date.parse(right.header?.timestamp ?? '') >= begun) expected.about['header'] = found.about['header']
  const problems = Object.keys(expected.about).flatMap((name) =>
    JSON.stringify(expected.about[name]) === JSON.stringify(found.about[name])
      ? []
      : [
          `after ${count} lines first, its ${name} is ${JSON.stringify(found.about[name])}, not ${JSON.stringify(expected.about[name])}`,
        ],
  )
  for (const [id, entry] of expected.entries) {
    if (found.entries.get(id) !== entry)
      problems.push(`after ${count} lines first, an entry is ${found.entries.get(id)}, not ${entry}`)
  }
  for (const [id, entry] of found.entries) {
    // A call that was closed when it had no result yet: its result came later, and the closing entry is a branch of its own.
    const isClosing = entry.includes('"No result: ') && !found.path.has(id)
    if (!expected.entries.has(id) && !isClosing)
      problems.push(`after ${count} lines first, there is one more entry: ${entry}`)
  }
  return problems
}

/**
 * Rows of a database change: what was imported while a text or some calls were half there must go on in the whole one. Each call has a
 * twin that runs beside it.
 */
export async function checkGrowth(specimen: Specimen): Promise<string[]> {
  const lines = specimen.lines.flatMap((line) => [line, ...twinOf(line)])
  const whole = memoryStore()
  const { id } = await importInto(whole, withLines(specimen, lines))
  await using left = await whole.open(id)
  const expected = await goingOn(left)
  const problems: string[] = []
  for (const index of lines.keys()) {
    for (const count of [1, 2, 3]) {
      const changing = lines.slice(index, index + count).map(halfOf)
      if (changing.length < count || changing.every((half) => half === undefined)) continue
      const parts = memoryStore()
      const halves = changing.map((half, place) => half ?? lines[index + place] ?? '')
      await importInto(parts, withLines(specimen, [...lines.slice(0, index), ...halves]))
      await importInto(parts, withLines(specimen, lines))
      await using right = await parts.open(id)
      if ((await goingOn(right)) !== expected)
        problems.push(`after half of line ${index + 1} and ${count - 1} more first, it goes on elsewhere`)
    }
  }
  return problems
}

/** What the path says, with the totals. */
async function goingOn(session: Session): Promise<string> {
  const { about, path, entries } = await stateOf(session)
  const said = [...path].map((id) => {
    const { message } = JSON.parse(entries.get(id) ?? '{}') as { message?: object }
    return message && { ...message, usage: null }
  })
  return JSON.stringify([said, { ...about, leaf: null }])
}

function twinOf(line: string): string[] {
  const row = JSON.parse(line) as { id: string; data?: { type?: unknown; callID?: unknown } }
  if (row.data?.type !== 'tool') return []
  return [
    JSON.stringify({ ...row, id: `${row.id}twin`, data: { ...row.data, callID: `${String(row.data.callID)}twin` } }),
  ]
}

function halfOf(line: string): string | undefined {
  const row = JSON.parse(line) as { data?: unknown }
  const data = (row.data ?? {}) as { type?: unknown; text?: unknown; state?: { status?: unknown; input?: unknown } }
  if (typeof data.text === 'string')
    return JSON.stringify({ ...row, data: { ...data, text: data.text.slice(0, data.text.length / 2) } })
  if (data.type !== 'tool' || data.state?.status !== 'completed') return undefined
  return JSON.stringify({ ...row, data: { ...data, state: { status: 'running', input: data.state.input } } })
}

interface State {
  about: Record<string, unknown>
  entries: Map<string, string>
  /** The entries from the root to the leaf. */
  path: Set<string>
}

async function stateOf(session: Session): Promise<State> {
  const entries = await entriesOf(session)
  const parents = new Map(entries.map(({ id, parentId }) => [id, parentId]))
  const path = new Set<string>()
  for (let id: string | null = session.leafId; id !== null; id = parents.get(id) ?? null) path.add(id)
  const { tokens, cost } = session.totals
  const about = {
    header: { ...session.header, seq: 0 },
    leaf: session.leafId,
    name: session.name,
    labels: [...session.getLabels()].map(([id, label]) => `${id} ${label}`).toSorted(),
    tokens,
    cost: Math.round(cost * 1e9),
  }
  return { about, path, entries: new Map(entries.map(({ seq: _, ...entry }) => [entry.id, JSON.stringify(entry)])) }
}
